// Goal: a configuration file that is broken at boot keeps no etcd down: the agent says so loudly and runs on the last good
// one; a good file ends that.
// Method: one node; the file is broken while neither agent nor etcd run, as over a reboot.
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { alarmOf, readyAfter, runAgentToEnd, type signalEtcd, test } from '../support/crash-node.ts';
import { damageFile } from '../support/damage.ts';
import { eventually } from '../support/eventually.ts';

describe('the agent boots from its last good configuration', () => {
  test.for([
    ['a key that is none', (good: string) => `${good}\nbogus: 1\n`, /bogus: is no key of this file/],
    ['a value that is none', (good: string) => good.replace('idleTurn: 1s', 'idleTurn: soon'), /timing\.idleTurn: /],
    ['no YAML at all', (good: string) => `${good}\n\t: [}\n`, /agent\.yaml:\d+:\d+: /],
  ] as const)('%s', async ([, broken, text], { lab: { node, config: good } }) => {
    const life = await signalAgentAndEtcd(node);
    writeFileSync(node.configFile, broken(good));
    await node.startAgent();
    const back = await readyAfter(node, life);
    expect(alarmOf(back, 'configurationRefused')).toMatch(text);
    const log = node.agentLog().slice(node.agentLog().lastIndexOf('"msg":"the agent starts"'));
    expect(log).toMatch(/"level":"error".*the configuration is refused; the agent runs on the last good one/);
    await eventually(async () => {
      const raised = (await node.events()).filter(({ kind }) => kind === 'alarm.raised');
      return raised.some(({ data }) => data['alarm'] === 'configurationRefused');
    });
    // Still bad: nothing changes. Good: the alarm is over.
    process.kill(node.agentPid, 'SIGHUP');
    await eventually(() => node.agentLog().slice(-20_000).includes('the reload failed and changed nothing'));
    writeFileSync(node.configFile, good);
    process.kill(node.agentPid, 'SIGHUP');
    await node.until((status) => alarmOf(status, 'configurationRefused') === undefined, 'the alarm is over');
    expect((await node.status()).process.pid).toBe(back.process.pid);
  });

  test('A24 I18 a name that was changed under a member: etcd is seen, kept and supervised on', async ({
    lab: { node, config: good },
  }) => {
    const { process: before, member } = await node.status();
    await node.endAgent('SIGTERM');
    writeFileSync(node.configFile, good.replace(/node: \{ ?id: n1 ?\}/, 'node: {id: n1}\ncluster: {name: renamed}'));
    await node.startAgent();
    const after = await node.until(({ process: { phase } }) => phase === 'ready', 'it is ready to the new agent');
    expect(alarmOf(after, 'configurationRefused')).toMatch(/cluster\.name: is renamed, and .* want default/);
    expect(after).toMatchObject({
      process: { pid: before.pid, adopted: true },
      member: { memberId: member?.memberId },
    });
  });

  test('without one, or with one that is damaged, it ends with 3 and names every mistake', async ({
    lab: { node, config: good },
  }) => {
    const pid = await node.etcdPid();
    await node.endAgent('SIGTERM');
    const lastGood = join(node.stateDir, 'config.last-good');
    writeFileSync(node.configFile, `${good}\nbogus: 1\nother: 2\n`);
    for (const spoil of [() => damageFile(lastGood, 'bit flip'), () => rmSync(lastGood)]) {
      spoil();
      const { code, output } = await runAgentToEnd(node.configFile);
      expect(code).toBe(3);
      expect(output).toMatch(/bogus: is no key/);
      expect(output).toMatch(/other: is no key/);
    }
    expect(node.processes()).toContain(pid);
    // A good start writes it anew.
    writeFileSync(node.configFile, good);
    await node.startAgent();
    expect(existsSync(lastGood)).toBe(true);
  });

  test('A31 a bad file on SIGHUP changes nothing and stands in the status until the file is good', async ({
    lab: { node, config: good },
  }) => {
    const { process: before } = await node.status();
    writeFileSync(node.configFile, good.replace('etcd:\n', 'etcd:\n  flags: {no-such-flag: 1}\n'));
    process.kill(node.agentPid, 'SIGHUP');
    const told = await node.until((status) => alarmOf(status, 'configurationRefused') !== undefined, 'it says so');
    expect(alarmOf(told, 'configurationRefused')).toMatch(/no-such-flag/);
    expect(told.process).toMatchObject({ pid: before.pid, phase: 'ready' });
    writeFileSync(node.configFile, good);
    process.kill(node.agentPid, 'SIGHUP');
    await node.until((status) => alarmOf(status, 'configurationRefused') === undefined, 'the alarm is over');
  });
});

/** As over a reboot: neither agent nor etcd run any more. Returns the life that ended. */
async function signalAgentAndEtcd(node: Parameters<typeof signalEtcd>[0]): Promise<number> {
  const { pid, life } = (await node.status()).process;
  await node.endAgent('SIGKILL');
  process.kill(pid ?? 0, 'SIGKILL');
  return life ?? 0;
}
