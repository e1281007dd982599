// Goal: a member that was run by hand becomes ours without a change to its data or its ids; what does not fit is refused.
// Method: a real cluster that the test starts by hand, one member's data directory moved to where an agent has it.
import { mkdirSync, readdirSync, renameSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished } from 'vitest';
import { formatId } from '../../src/etcd/member.ts';
import { command } from '../support/command.ts';
import { storyVersions } from '../support/etcd-binaries.ts';
import { clientOf } from '../support/etcd-client.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { Fleet, type FleetNode, type FleetOptions } from '../support/fleet.ts';
import { type RealCluster, type RealEtcd, test } from '../support/real-etcd.ts';

for (const binary of storyVersions()) {
  describe(`adoption on etcd ${binary.version}`, () => {
    test('a stopped member with TLS: dry run changes nothing, adopt records it, the agent starts it with the same ids; then the others', {
      timeout: 240_000,
    }, async ({ etcd }) => {
      const cluster = await etcd({ size: 3, tls: true, binary });
      const [n1, n2] = [cluster.member('n1'), cluster.member('n2')];
      await n2.etcdctl('put', 'before', 'the adoption');
      const ids = await idsOf(cluster, n1);
      const node = await nodeFor(cluster, n1);
      await node.startAgent();
      const early = await command(node, 'adopt');
      expect(early).toMatchObject({ code: 4 });
      expect(early.stderr).toMatch(/refused: there is no member's data in .* \(absent\)/);
      await n1.stop();
      moveData(n1, node);
      await node.until(({ plan }) => plan.what === 'dataNotOurs', 'the data is held as not ours', 40_000);
      expect((await node.status()).plan.because).toContain(`member ${ids.memberId} of cluster ${ids.clusterId}`);
      const before = filesOf(node);
      const dry = await command(node, 'adopt', '--dry-run');
      expect(dry).toMatchObject({ code: 0 });
      expect(dry.stdout).toContain(`the data directory holds member ${ids.memberId} of cluster ${ids.clusterId}`);
      expect(dry.stdout).toMatch(/the list has it as a voter; 3 voters/);
      expect(dry.stdout).not.toContain('warning');
      expect(filesOf(node)).toEqual(before);
      expect((await node.status()).member).toBeNull();
      const adopted = await command(node, 'adopt', '--output', 'json');
      expect(JSON.parse(adopted.stdout)).toMatchObject({ done: true, dryRun: false });
      const status = await node.ready(60_000);
      expect(status.member).toMatchObject(ids);
      expect(status.process).toMatchObject({ life: 1, restarts: 0 });
      await node.knowsEverybody(3);
      expect(await etcdctl(node, 'get', 'before', '--print-value-only')).toBe('the adoption\n');
      const kinds = (await node.events()).map(({ kind }) => kind);
      expect(kinds).toContain('data.adopted');
      expect(kinds).not.toContain('cluster.founded');
      await expect(node.post('/v1/found')).rejects.toThrow(/is, or was, a member/);
      // One member after the other: then the whole cluster is ours, with the ids and the data that it had.
      const others = [await takenOver(cluster, n2), await takenOver(cluster, cluster.member('n3'))];
      expect((await command(node, 'members')).stdout).toContain('3 voters, quorum 2, 3 answer now, 1 more may fail');
      expect(await etcdctl(others[1] as FleetNode, 'get', 'before', '--print-value-only')).toBe('the adoption\n');
    });

    test('a member that still runs: its process is named and its flags compared, and the agent takes over when it ends', async ({
      etcd,
    }) => {
      const cluster = await etcd({ size: 3, binary, flags: ['--quota-backend-bytes=4294967296'] });
      const n1 = cluster.member('n1');
      const ids = await idsOf(cluster, n1);
      const elsewhere = cluster.member('n2').peerUrl; // a wrong address, on which somebody listens
      const node = await nodeFor(cluster, n1, { peerUrl: elsewhere });
      moveData(n1, node);
      await node.startAgent();
      const { pid } = n1;
      const dry = await command(node, 'adopt', '--dry-run');
      expect(dry.stdout).toContain(`not started while: the data directory is held by process ${pid}`);
      expect(dry.stdout).toContain(
        'warning: it runs with --quota-backend-bytes=4294967296, which is not in etcd.flags',
      );
      expect(dry.stdout).toContain(`warning: the others dial it at ${n1.peerUrl}, the configuration says ${elsewhere}`);
      await node.endAgent();
      const right = await nodeFor(cluster, n1, { directory: node.directory });
      await right.startAgent();
      expect(await command(right, 'adopt')).toMatchObject({ code: 0 });
      const held = await right.until(({ plan }) => plan.what === 'preflight', 'somebody holds the directory');
      expect(held.plan.because).toContain(`held by process ${pid}`);
      expect(n1.isRunning()).toBe(true);
      expect(right.lives()).toBe(0);
      await n1.stop();
      const status = await right.ready(60_000);
      expect(status.member).toMatchObject(ids);
      await right.knowsEverybody(3);
    });

    test('data of a foreign cluster and of a member that was removed meanwhile are refused', async ({ etcd }) => {
      const cluster = await etcd({ size: 3, binary });
      const [n1, n2] = [cluster.member('n1'), cluster.member('n2')];
      const ids = await idsOf(cluster, n1);
      const node = await nodeFor(cluster, n1);
      await n1.stop();
      moveData(n1, node);
      await node.startAgent();
      const stranger = await etcd({ size: 1, binary });
      const foreign = stranger.member('n1');
      node.writeRole({ role: 'consensus-member', grantId: 'foreign', endpoints: [foreign.clientUrl] });
      await node.until(({ role }) => role.grantId === 'foreign', 'the role with a wrong endpoint is known');
      const foreignId = (await idsOf(stranger, foreign)).clusterId;
      await expect(node.post('/v1/adopt', { dryRun: true })).rejects.toThrow(
        `a member of cluster ${foreignId} answers, and the data directory is of cluster ${ids.clusterId}`,
      );
      await foreign.kill();
      await n2.etcdctl('member', 'remove', ids.memberId);
      node.writeRole({ role: 'consensus-member', grantId: 'g2', endpoints: [n2.clientUrl] });
      await node.until(({ role }) => role.grantId === 'g2', 'the new role is known');
      const refused = await command(node, 'adopt');
      expect(refused).toMatchObject({ code: 4 });
      expect(refused.stderr).toMatch(new RegExp(`member ${ids.memberId} .* is not in the list of .*: it was removed`));
      await expect(node.post('/v1/adopt', { newClusterId: foreignId })).rejects.toThrow(/not cluster/);
      expect((await node.status()).member).toBeNull();
      expect(node.lives()).toBe(0);
    });
  });
}

interface Ids {
  readonly clusterId: string;
  readonly memberId: string;
}

async function idsOf(cluster: RealCluster, member: RealEtcd): Promise<Ids> {
  using client = clientOf(cluster, member);
  const { clusterId, memberId } = (await client.status({ deadlineMs: 5_000 })).header;
  return { clusterId: formatId(clusterId), memberId: formatId(memberId) };
}

/** Stops a member that was run by hand, and has an agent adopt it; the ids stay. */
async function takenOver(cluster: RealCluster, member: RealEtcd): Promise<FleetNode> {
  const ids = await idsOf(cluster, member);
  const node = await nodeFor(cluster, member);
  await node.startAgent();
  await member.stop();
  moveData(member, node);
  await node.until(({ plan }) => plan.what === 'dataNotOurs', 'the data is held as not ours', 40_000);
  expect(await command(node, 'adopt')).toMatchObject({ code: 0 });
  expect((await node.ready(60_000)).member).toMatchObject(ids);
  await node.knowsEverybody(3);
  return node;
}

/** An agent's node with the name, ports and authority of a member that is run by hand. */
async function nodeFor(
  cluster: RealCluster,
  member: RealEtcd,
  how: { readonly peerUrl?: string; readonly directory?: string } = {},
): Promise<FleetNode> {
  const options: FleetOptions = {
    size: 0,
    binary: member.binary,
    ...(cluster.tls === undefined ? {} : { tls: true, ca: cluster.tls.ca }),
  };
  const fleet = await Fleet.make(options);
  onTestFinished(async ({ task }) => {
    if (task.result?.state === 'fail') process.stderr.write(`${fleet.lastLines()}\n`);
    await fleet.close();
  });
  const ports = [how.peerUrl ?? member.peerUrl, member.clientUrl, member.metricsUrl].map((url) =>
    Number(new URL(url).port),
  );
  const node = await fleet.addNode(member.name, {
    ports,
    ...(how.directory === undefined ? {} : { directory: how.directory }),
  });
  const others = cluster.members.filter((other) => other !== member).map(({ clientUrl }) => clientUrl);
  node.writeRole({ role: 'consensus-member', grantId: 'g1', endpoints: others });
  return node;
}

function moveData(member: RealEtcd, node: FleetNode): void {
  mkdirSync(dirname(node.dataDir), { recursive: true });
  renameSync(member.dataDir, node.dataDir);
}

/** Every file below the data root and the state directory that an order could change, with size and time. */
function filesOf(node: FleetNode): readonly string[] {
  return [join(node.directory, 'data'), node.stateDir].flatMap((root) =>
    readdirSync(root, { recursive: true, encoding: 'utf8' })
      .filter((name) => !name.startsWith('outbox') && !name.includes('reported'))
      .map((name) => {
        const { size, mtimeMs } = statSync(join(root, name));
        return `${name} ${size} ${mtimeMs}`;
      })
      .sort(),
  );
}
