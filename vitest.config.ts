import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

// Two projects. `unit` needs nothing but Node. `real` runs real etcd processes: several files side by side, which share a
// budget of five (test/support/etcd-budget.ts). Most of their time is waiting, also for their share.
export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/real/**', 'test/systemd/**'],
          pool: 'forks',
          maxWorkers: 2,
          testTimeout: 20_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'real',
          include: ['test/real/**/*.test.ts'],
          globalSetup: ['test/support/real-setup.ts'],
          setupFiles: ['test/support/etcd-budget-setup.ts'],
          pool: 'forks',
          maxWorkers: 4,
          testTimeout: 120_000,
          hookTimeout: 60_000,
          // In CI a test on real processes has a second try; whoever needed it is named (test/support/second-try-reporter.ts).
          retry: process.env['CI'] === 'true' ? 1 : 0,
        },
      },
    ],
  },
});
