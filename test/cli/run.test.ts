// Goal: signals do what is promised, and an error that nobody caught ends the agent with 1 after it was logged.
// Method: a real process around an agent of one line; it is waited for by what it logs.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';

const smallest = `
node: { id: n1 }
dataRoot: /srv/etcd
etcd: { binary: /usr/bin/etcd, peerUrl: 'http://10.0.0.1:2380', clientUrl: 'http://10.0.0.1:2379' }
role: { file: /etc/role.json }
`;

function start(how: string) {
  const directory = mkdtempSync(join(tmpdir(), 'run-'));
  const config = join(directory, 'a.yaml');
  writeFileSync(config, smallest);
  const child: ChildProcess = spawn(
    process.execPath,
    [join(import.meta.dirname, '../support/run-child.ts'), config, how],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const agent = { child, config, log: '', code: undefined as number | null | undefined };
  child.stdout?.on('data', (chunk) => {
    agent.log += String(chunk);
  });
  const ended = new Promise<void>((resolve) =>
    child.on('exit', (code) => {
      agent.code = code;
      resolve();
    }),
  );
  onTestFinished(async () => {
    if (agent.code === undefined) child.kill('SIGKILL');
    await ended;
    rmSync(directory, { recursive: true });
  });
  const logs = (text: string, times = 1) =>
    vi.waitFor(() => expect(agent.log.split(text).length - 1, agent.log).toBeGreaterThanOrEqual(times), 15_000);
  return { ...agent, agent, ended, logs };
}

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s ends the agent with 0, and one line says that etcd runs on',
  async (signal) => {
    const { child, agent, ended, logs } = start('run');
    await logs('running');
    child.kill(signal);
    await ended;
    expect(agent.code).toBe(0);
    expect(agent.log).toMatch(/"msg":"the agent ends and etcd runs on; [^"]*etcd-node-agent stop/);
  },
);

test('a second SIGTERM ends an agent that hangs', async () => {
  const { child, agent, ended, logs } = start('hang');
  await logs('running');
  child.kill('SIGTERM');
  await logs('the agent ends and etcd runs on');
  child.kill('SIGTERM');
  await ended;
  expect(agent.code).toBe(1);
});

test('A31: SIGHUP reads the file again; a bad one is named in the log and changes nothing', async () => {
  const { child, config, agent, ended, logs } = start('run');
  await logs('running');
  writeFileSync(config, `${smallest}log: { level: loud }\n`);
  child.kill('SIGHUP');
  await logs('the reload failed and changed nothing');
  expect(agent.log).toContain("log.level: is 'loud'; want one of");
  writeFileSync(config, `${smallest}log: { level: warn }\n`);
  child.kill('SIGHUP');
  await logs('"msg":"reloaded"');
  child.kill('SIGTERM');
  await ended;
  expect(agent.code).toBe(0);
});

test.each([
  ['throw', 'an uncaught exception'],
  ['reject', 'an unhandled rejection'],
  ['fail', 'a part failed'],
])('A10: %s: logged, then 1', async (how, words) => {
  const { agent, ended } = start(how);
  await ended;
  expect(agent.code).toBe(1);
  expect(agent.log).toContain(words);
  expect(agent.log).toContain('etcd runs on');
});
