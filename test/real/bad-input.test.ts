// Goal: I28 no input of any kind makes the agent exit or changes anything: bodies, queries and connections of the local API,
// the role file, the configuration on SIGHUP.
// Method: one node; all of it is thrown at the running agent; then its pid, etcd's pid and its status are compared.
import { mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished } from 'vitest';
import type { StatusView } from '../../src/agent/control.ts';
import { quickTimings, test } from '../support/crash-node.ts';
import { eventually } from '../support/eventually.ts';
import type { FleetNode } from '../support/fleet.ts';

describe('I28 X08 bad input changes nothing', () => {
  test('bodies and queries of the API', { timeout: 180_000 }, async ({ lab: { node } }) => {
    const before = await stateOf(node);
    let answered = 0;
    for (const [path, bodies] of badBodies) {
      for (const body of bodies) {
        const { status, text } = await send(node, 'POST', path, body);
        expect([path, body.slice(0, 100), status >= 400 && status < 500]).toEqual([path, body.slice(0, 100), true]);
        expect(JSON.parse(text), text).toMatchObject({ code: expect.any(String), message: expect.any(String) });
        answered++;
      }
    }
    for (const path of badQueries) {
      const { status } = await send(node, 'GET', path, '');
      expect([path, status >= 400 && status < 500]).toEqual([path, true]);
      answered++;
    }
    process.stderr.write(`${answered} bad requests, each refused\n`);
    expect(await stateOf(node)).toEqual(before);
  });

  test('connections that are no HTTP, end in the middle, or never speak', async ({ lab: { node } }) => {
    const before = await stateOf(node);
    for (const bytes of [
      '\0\0\0\0',
      'GET /v1/status HTTP/9.9\r\n\r\n',
      'POST /v1/stop HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{',
      'POST /v1/stop HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n',
      `GET /${'a'.repeat(100_000)} HTTP/1.1\r\n\r\n`,
      `GET / HTTP/1.1\r\n${'X: y\r\n'.repeat(5_000)}\r\n`,
      '',
    ]) {
      await throwAt(node, bytes);
    }
    expect(await stateOf(node)).toEqual(before);
  });

  test('role files', async ({ lab: { node } }) => {
    onTestFinished(() => rmSync(node.roleFile, { recursive: true, force: true }));
    node.writeRole({ role: 'consensus-member', grantId: 'g1', epoch: 1, generation: 1 });
    await node.until(({ role: { known, generation } }) => known && generation === 1, 'the good role is accepted');
    const before = await stateOf(node);
    for (const [what, put] of badRoles(node)) {
      rmSync(node.roleFile, { recursive: true, force: true });
      const from = node.agentLog().length;
      put();
      // Whatever it is, the agent says that it did not take it.
      await eventually(() => /the role document was refused|the role is unknown/.test(node.agentLog().slice(from)), {
        what: `the word on ${what}`,
      });
      const { role } = await node.status();
      expect([what, role.role, role.generation]).toEqual([what, 'consensus-member', 1]);
    }
    expect(await stateOf(node)).toEqual(before);
  });

  test('A31 configurations on SIGHUP', { timeout: 180_000 }, async ({ lab: { node, config } }) => {
    const before = await stateOf(node);
    for (const [what, text] of badConfigs(config)) {
      const from = node.agentLog().length;
      writeFileSync(node.configFile, text);
      process.kill(node.agentPid, 'SIGHUP');
      await eventually(() => node.agentLog().slice(from).includes('the reload failed and changed nothing'), {
        what: `the word on ${what}`,
      });
    }
    for (const make of [
      () => {}, // there is none
      () => mkdirSync(node.configFile),
      () => symlinkSync('/dev/zero', node.configFile),
    ]) {
      rmSync(node.configFile, { recursive: true, force: true });
      make();
      const from = node.agentLog().length;
      process.kill(node.agentPid, 'SIGHUP');
      await eventually(() => node.agentLog().slice(from).includes('the reload failed and changed nothing'));
    }
    rmSync(node.configFile, { recursive: true, force: true });
    writeFileSync(node.configFile, config);
    process.kill(node.agentPid, 'SIGHUP');
    await node.until(({ alarms }) => alarms.length === 0, 'the good file is taken');
    expect(await stateOf(node)).toEqual(before);
  });
});

/** What must not change, whatever is thrown at the agent. */
async function stateOf(node: FleetNode): Promise<unknown> {
  const status: StatusView = await node.until(({ process: { phase } }) => phase === 'ready', 'etcd is ready');
  const { pid, life, intent } = status.process;
  const { supervision, member, paused, plan, alarms } = status;
  return {
    agent: status.agent,
    lives: node.lives(),
    process: { pid, life, intent },
    supervision,
    member: member?.memberId,
    paused,
    plan: plan.kind,
    alarms: alarms.map(({ alarm }) => alarm),
    events: await operatorEvents(node),
  };
}

async function operatorEvents(node: FleetNode): Promise<number> {
  return (await node.events()).filter(({ kind }) => kind === 'operator.command').length;
}

const deep = '['.repeat(20_000) + ']'.repeat(20_000);

/** For every command: not JSON, not an object, an unknown field, a field of another kind. */
const everywhere: readonly string[] = [
  '{',
  '[]',
  '"stop"',
  'null x',
  '{"bogus":1}',
  '{"dryRun":"yes","bogus":true}',
  '{"__proto__":{"dryRun":false}}',
  '{"constructor":{"prototype":{"force":true}},"x":1}',
  '{"dryRun":true,"dryRun":false}',
  deep,
  `{"x":"${'x'.repeat(100_000)}"}`,
  '\u0000',
];

const badBodies: readonly (readonly [string, readonly string[]])[] = [
  ['/v1/stop', [...everywhere, '{"force":1}', '{"force":null}', '{"dryRun":"true"}']],
  ['/v1/start', [...everywhere, '{"dryRun":0}']],
  [
    '/v1/pause',
    [
      ...everywhere,
      '{}',
      '{"forMs":-1,"reason":"x"}',
      '{"forMs":1e99,"reason":"x"}',
      '{"forMs":5000,"reason":"a\\nb"}',
    ],
  ],
  ['/v1/resume', everywhere],
  ['/v1/reload', everywhere],
  ['/v1/found', [...everywhere, '{"dryRun":{}}', '{}']],
  ['/v1/found/prepare', [...everywhere, '{}']],
  [
    '/v1/found/list',
    [...everywhere, '{"lines":[]}', '{"lines":["x"]}', '{"lines":[1]}', '{"lines":["n1 http://127.0.0.1:1 zz"]}'],
  ],
  ['/v1/adopt', [...everywhere, '{"newClusterId":"XYZ"}', '{"newClusterId":"1"}']],
  ['/v1/confirm-removed', [...everywhere, '{}', '{"memberId":"1"}', '{"memberId":"../../etc"}']],
  ['/v1/reject-removal', [...everywhere, '{"memberId":1}', '{"memberId":"ffffffffffffffff"}']],
  [
    '/v1/events/skip',
    [...everywhere, '{"seq":0,"reason":"x"}', '{"seq":1,"reason":"x"}', '{"seq":9007199254740993,"reason":"x"}'],
  ],
  ['/v1/nothing', ['{}']],
  ['/v1/status', ['{}']],
];

const badQueries: readonly string[] = [
  '/v1/status?x=1',
  '/v1/events?limit=0',
  '/v1/events?limit=1001',
  '/v1/events?limit=1&limit=2',
  '/v1/events?after=-1',
  '/v1/events?after=99999999999999999999',
  '/v1/events?follow=maybe',
  '/v1/logs?life=0',
  '/v1/logs?life=123456',
  '/v1/logs?lines=1e5',
  '/v1/logs?life=1&follow=true',
  '/v1/%00',
  '/v1/status/../stop',
  '/%',
];

function badRoles(node: FleetNode): readonly (readonly [string, () => void])[] {
  const role = (change: Record<string, unknown>) =>
    JSON.stringify({
      nodeId: node.name,
      role: 'none',
      grantId: 'g2',
      epoch: 1,
      generation: 2,
      endpoints: [],
      ...change,
    });
  const texts: readonly (readonly [string, string])[] = [
    ['nothing', ''],
    ['no YAML', '\t: [}'],
    ['a list', '[1, 2]'],
    ['K09 another node', role({ nodeId: 'n9' })],
    ['K09 another cluster', role({ clusterId: 'ffffffffffffffff' })],
    ['an older generation', role({ generation: 0 })],
    ['the same generation with other content', role({ generation: 1 })],
    ['an older epoch', role({ epoch: 0, generation: 9 })],
    ['no such role', role({ role: 'king' })],
    ['K29 an unknown field', role({ bogus: 1 })],
    ['a number for a text', role({ grantId: 7 })],
    ['X13 an endpoint that is no member', role({ endpoints: ['file:///etc/passwd'] })],
    ['a duplicate key', `${role({}).slice(0, -1)},"role":"leaving"}`],
    ['a prototype', role({}).replace('{', '{"__proto__":{"role":"none"},')],
    ['too deep', deep],
    ['NULs', '\0'.repeat(1_000)],
  ];
  return [
    ...texts.map(([what, text]) => [what, () => writeFileSync(node.roleFile, text)] as const),
    ['a directory', () => mkdirSync(node.roleFile)],
    [
      'a gigabyte',
      () => {
        writeFileSync(node.roleFile, '{');
        truncateSync(node.roleFile, 1024 ** 3);
      },
    ],
    ['an endless file', () => symlinkSync('/dev/zero', node.roleFile)],
    ['a link to itself', () => symlinkSync(node.roleFile, node.roleFile)],
  ];
}

function badConfigs(good: string): readonly (readonly [string, string])[] {
  const without = (key: string) => good.split('\n').filter((line) => !line.startsWith(`${key}:`)).join('\n'); // biome-ignore format: one thought
  return [
    ['nothing', ''],
    ['no YAML', '\t: [}'],
    ['a list', '- 1'],
    ['NULs', '\0'.repeat(100)],
    ['too long', `${good}# ${'x'.repeat(100_000)}`],
    ['too deep', `${good}\nx: ${deep}`],
    [
      'aliases of aliases',
      `${good}\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b]`,
    ],
    ['an unknown key', `${good}\nbogus: 1`],
    ['a prototype', `${good}\n__proto__: {node: {id: n2}}`],
    ['no node', without('node')],
    ['another node', good.replace('node: {id: n1}', 'node: {id: n2}')],
    ['another data root', good.replace(/^dataRoot: .*$/m, 'dataRoot: /srv/other')],
    ['another state directory', good.replace(/^stateDir: .*$/m, 'stateDir: /srv/other')],
    ['another peer URL', good.replace(/peerUrl: .*$/m, "peerUrl: 'http://127.0.0.1:1'")],
    ['a duration that is none', good.replace(quickTimings, 'timing: {idleTurn: soon}')],
    ['a duration out of its range', good.replace(quickTimings, 'timing: {idleTurn: 1ms}')],
    ['a flag that the agent sets', good.replace('etcd:\n', 'etcd:\n  flags: {data-dir: /tmp}\n')],
    ['a flag that is none', good.replace('etcd:\n', 'etcd:\n  flags: {no-such-flag: 1}\n')],
    ['TLS without https', `${good}\ntls: {peer: {cert: /a, key: /b, ca: /c}}`],
  ];
}

function socketOf(node: FleetNode): string {
  return join(node.directory, 'run', 'agent.sock');
}

function send(
  node: FleetNode,
  method: string,
  path: string,
  body: string,
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        socketPath: socketOf(node),
        method,
        path,
        agent: false,
        headers: method === 'POST' ? { 'content-type': 'application/json' } : {},
      },
      (answer) => {
        const chunks: string[] = [];
        answer.on('data', (chunk) => chunks.push(String(chunk)));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text: chunks.join('') }));
      },
    );
    asked.on('error', reject);
    asked.setTimeout(20_000, () => asked.destroy(new Error(`${method} ${path} was not answered`)));
    asked.end(body);
  });
}

/** Sends bytes and hangs up, or is hung up on. */
function throwAt(node: FleetNode, bytes: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ path: socketOf(node) });
    socket.on('error', () => {});
    socket.on('close', () => resolve());
    socket.on('connect', () => socket.end(bytes));
    socket.resume();
  });
}
