import { defineConfig } from 'vitest/config';

// Three projects. `unit` needs nothing but Node. `real` and `single` run real etcd processes: `real` up to three members at
// once, `single` at most two, so that both may run side by side with no more than five. Each takes its files one by one.
const single = [
  'agent-kill',
  'bad-input',
  'bad-state',
  'boot-config',
  'crash',
  'disk-full',
  'exit-classes',
  'flags',
  'log-facts',
  'tls-files',
].map((name) => `test/real/${name}.test.ts`);

const onRealEtcd = {
  globalSetup: ['test/support/bundle-setup.ts'],
  pool: 'forks' as const,
  maxWorkers: 1,
  fileParallelism: false,
  testTimeout: 120_000,
  hookTimeout: 60_000,
  // In CI a test on real processes has a second try; whoever needed it is named (test/support/second-try-reporter.ts).
  retry: process.env['CI'] === 'true' ? 1 : 0,
};

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/real/**', 'test/systemd/**'],
          pool: 'forks',
          maxWorkers: 2,
          testTimeout: 20_000,
        },
      },
      { test: { ...onRealEtcd, name: 'single', include: single } },
      { test: { ...onRealEtcd, name: 'real', include: ['test/real/**/*.test.ts'], exclude: single } },
    ],
  },
});
