// Goal: a fleet that is wholly on TLS founds, reports and notices removals; bad files stop a start before etcd is spawned and
// say why; replaced files are used.
// Method: certificates of a test authority on every side, client certificates demanded everywhere, the webhook included.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:tls';
import { describe, expect } from 'vitest';
import { command } from '../support/command.ts';
import { storyVersions } from '../support/etcd-binaries.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { eventually } from '../support/eventually.ts';
import { type FleetNode, type NodeTls, type NodeTlsFiles, writeIdentity } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';
import { TestCa } from '../support/test-ca.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

for (const binary of storyVersions()) {
  describe(`TLS everywhere on etcd ${binary.version}`, () => {
    test('three nodes found, report over https with a client certificate, and see a removal', {
      timeout: 180_000,
    }, async ({ fleet: make }) => {
      const ca = new TestCa();
      const leaf = ca.issue({ commonName: 'receiver', ips: ['127.0.0.1'] });
      await using receiver = await tlsReceiver(ca, leaf);
      const fleet = await make({ binary, tls: true, ca, webhookUrl: receiver.url });
      const [n1, , n3] = fleet.nodes;
      if (n1 === undefined || n3 === undefined) throw new Error('there are three nodes');
      for (const node of fleet.nodes) {
        const { member, cluster, process, alarms } = await node.status();
        expect(member?.peerUrl).toMatch(/^https:/);
        expect(cluster?.members.every(({ clientUrls }) => clientUrls.every((url) => url.startsWith('https:')))).toBe(
          true,
        );
        expect(process.phase).toBe('ready');
        expect(alarms).toEqual([]);
      }
      await etcdctl(n1, 'put', 'over', 'TLS');
      expect(await etcdctl(n3, 'get', 'over', '--print-value-only')).toBe('TLS\n');
      // Without a certificate nobody is served: neither etcd's clients nor its metrics nor its peers.
      for (const url of [n1.clientUrl, n1.metricsUrl, n1.peerUrl]) {
        await expect(withoutCertificate(url, ca)).rejects.toThrow();
      }
      const id = (await n3.memberId()).toString(16);
      await eventually(() => etcdctl(n1, 'member', 'remove', id), { withinMs: 30_000, everyMs: 500 });
      await n3.until(({ plan }) => plan.what === 'removedByOthers', 'n3 knows that it was removed');
      expect(n3.lives()).toBe(1);
      await receiver.until(() =>
        receiver.events.some(({ type, node, data }) => {
          return type.endsWith('member.removed') && node === 'n3' && (data as { self: boolean }).self;
        }),
      );
      await n1.until(({ cluster }) => cluster?.members.length === 2, 'the others know it too');
      expect(new Set(receiver.requests.map(({ clientName }) => clientName))).toEqual(new Set(['upstream']));
    });

    test('a missing, expired, foreign or mismatching file stops the start before etcd is spawned, and it starts by itself once all is right', {
      timeout: 180_000,
    }, async ({ fleet: make }) => {
      const fleet = await make({ founded: false, size: 1, binary, tls: true });
      const node = fleet.node('n1');
      const { ca, tls } = { ca: authorityOf(fleet.ca), tls: filesOf(node.tls) };
      rmSync(tls.server.key);
      await node.startAgent();
      expect((await command(node, 'found')).code).toBe(0);
      await blockedBy(node, `${tls.server.key}: does not exist`);
      const hour = 3_600_000;
      writeIdentity(tls.server, ca, {
        notBefore: new Date(Date.now() - 2 * hour),
        notAfter: new Date(Date.now() - hour),
      });
      await blockedBy(node, `${tls.server.cert}: the certificate expired at`);
      writeIdentity(tls.server, ca);
      writeIdentity(tls.peer, ca, { ips: ['10.9.8.7'], dns: [] });
      await blockedBy(node, `${tls.peer.cert}: the certificate does not name 127.0.0.1`);
      writeIdentity(tls.peer, ca);
      writeFileSync(tls.peer.key, ca.issue().key, { mode: 0o600 });
      await blockedBy(node, `${tls.peer.key}: the key does not belong to the certificate`);
      writeIdentity(tls.peer, new TestCa());
      writeFileSync(tls.peer.ca, ca.cert);
      await blockedBy(node, tls.peer.cert);
      writeIdentity(tls.peer, ca);
      writeFileSync(`${tls.client.cert}.new`, 'no PEM');
      renameSync(`${tls.client.cert}.new`, tls.client.cert);
      await blockedBy(node, `${tls.client.cert}: holds no certificate in PEM form`);
      writeIdentity(tls.client, ca, { commonName: 'client' });
      const status = await node.ready(60_000);
      expect(status.process).toMatchObject({ life: 1, lastExit: null });

      // The same for a start that is no founding: it is looked at each time, also after a crash.
      renameSync(tls.server.cert, `${tls.server.cert}.away`);
      process.kill(await node.etcdPid(), 'SIGKILL');
      await blockedBy(node, `${tls.server.cert}: does not exist`, 1);
      renameSync(`${tls.server.cert}.away`, tls.server.cert);
      expect((await node.ready(60_000)).process.life).toBe(2);
    });

    test('files that are replaced while etcd runs are used for new connections, of etcd and of the agent', {
      timeout: 120_000,
    }, async ({ fleet: make }) => {
      const ca = new TestCa();
      await using receiver = await tlsReceiver(ca, ca.issue({ ips: ['127.0.0.1'] }));
      const yaml = 'timing: {probeInterval: 500ms, probeMisses: 2, listInterval: 2s}';
      const fleet = await make({ size: 1, binary, tls: true, ca, webhookUrl: receiver.url, yaml });
      const node = fleet.node('n1');
      const tls = filesOf(node.tls);
      const pid = await node.etcdPid();
      const before = await serialOf(node.clientUrl, tls.client);
      writeIdentity(tls.server, ca);
      expect(await serialOf(node.clientUrl, tls.client)).not.toBe(before);
      writeIdentity(tls.peer, ca);
      // An identity that nobody trusts, then a good one: both show that the agent reads its files anew.
      writeIdentity(tls.client, new TestCa(), { commonName: 'stranger' });
      writeFileSync(tls.client.ca, ca.cert);
      await node.until(({ alarms }) => alarms.some(({ alarm }) => alarm === 'etcdUnresponsive'), 'it is not let in');
      writeIdentity(tls.client, ca, { commonName: 'renewed' });
      await node.until(({ alarms }) => alarms.length === 0, 'it is let in again');
      writeIdentity(tls.upstream, ca, { commonName: 'upstream, renewed' });
      await node.post('/v1/pause', { reason: 'something to report', forMs: 60_000 });
      await receiver.until(() => receiver.requests.at(-1)?.clientName === 'upstream, renewed');
      expect(await node.etcdPid()).toBe(pid);
      await eventually(() => node.agentLog().includes('TLS files have changed: new connection'));
    });
  });
}

async function blockedBy(node: FleetNode, because: string, lives = 0): Promise<void> {
  const blocked = await node.until(
    ({ plan }) => plan.what === 'preflight' && plan.because.includes(because),
    `the start is stopped by: ${because}`,
  );
  expect(blocked.plan.hint).not.toBe('');
  expect(node.lives()).toBe(lives);
  expect(node.processes()).toEqual([]);
}

/** The serial number of the certificate that a new connection is shown. */
function serialOf(url: string, files: NodeTlsFiles): Promise<string> {
  const { port, hostname: host } = new URL(url);
  return new Promise((resolve, reject) => {
    const [cert, key, ca] = [readFileSync(files.cert), readFileSync(files.key), readFileSync(files.ca)];
    const socket = connect({ host, port: Number(port), cert, key, ca }, () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

/** Connects without a certificate; with TLS 1.3 the refusal comes only when something is asked. */
function withoutCertificate(url: string, ca: TestCa): Promise<void> {
  const { port, hostname: host } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), ca: ca.cert }, () =>
      socket.write('GET /version HTTP/1.0\r\n\r\n'),
    );
    socket.on('error', reject).on('data', () => resolve());
    socket.on('close', () => reject(new Error('it was closed without an answer')));
  });
}

async function tlsReceiver(
  ca: TestCa,
  leaf: { readonly cert: string; readonly key: string },
): Promise<WebhookReceiver & AsyncDisposable> {
  const receiver = await WebhookReceiver.start({ tls: { ...leaf, ca: ca.cert } });
  return Object.assign(receiver, { [Symbol.asyncDispose]: () => receiver.close() });
}

function authorityOf(ca: TestCa | undefined): TestCa {
  if (ca === undefined) throw new Error('the fleet has no authority');
  return ca;
}

function filesOf(tls: NodeTls | undefined): NodeTls {
  if (tls === undefined) throw new Error('the node has no TLS files');
  return tls;
}
