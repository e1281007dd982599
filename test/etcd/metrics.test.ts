import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { etcdMetricsOf, pickSamples } from '../../src/etcd/metrics.ts';

const text = `# HELP etcd_server_has_leader Whether or not a leader exists. 1 is existence, 0 is not.
# TYPE etcd_server_has_leader gauge
etcd_server_has_leader 1
etcd_server_id{server_id="8e9e05c52164694d"} 1
etcd_server_is_leader 0
etcd_server_is_learner 1
etcd_server_leader_changes_seen_total 3
etcd_server_proposals_applied_total 1.234567e+06
etcd_server_proposals_committed_total 1234568
etcd_server_version{server_version="3.5.30"} 1
`;

describe('metrics of a member', () => {
  test('the samples that we use are read', () => {
    expect(etcdMetricsOf(text)).toEqual({
      memberId: 0x8e9e05c52164694dn,
      version: '3.5.30',
      hasLeader: true,
      isLeader: false,
      isLearner: true,
      leaderChangesSeen: 3,
      appliedIndex: 1_234_567,
      committedIndex: 1_234_568,
    });
  });

  test.each([
    ['nothing', ''],
    ['another program', 'go_goroutines 12\nup 1\n'],
    ['a page', '<html><body>etcd_server_has_leader 1</body></html>'],
    ['longer names', 'etcd_server_has_leader_total 1\nnot_etcd_server_has_leader 1'],
    ['no number', 'etcd_server_has_leader yes\netcd_server_is_leader 0x1\netcd_server_is_leader'],
    ['numbers that are no answer', 'etcd_server_has_leader 2\netcd_server_is_leader NaN\netcd_server_is_learner 0.5'],
    ['two servers', 'etcd_server_id{server_id="1"} 1\netcd_server_id{server_id="2"} 1'],
    ['an id that is none', 'etcd_server_id{server_id="g"} 1'],
    ['a line without end', `etcd_server_has_leader{x="${'a'.repeat(10_000)}"} 1`],
  ])('%s leaves everything unknown', (_what, other) => {
    expect(Object.values(etcdMetricsOf(other)).filter((value) => value !== undefined)).toEqual([]);
  });

  test('labels keep quotes, braces, commas and line breaks in their values', () => {
    const line = String.raw`m{a="x\"y",b="{1,2}",c="p\\q\nr"} -1.5e-3 1700000000000`;
    expect(pickSamples(line, new Set(['m']))).toEqual([
      { name: 'm', labels: { a: 'x"y', b: '{1,2}', c: 'p\\q\nr' }, value: -0.0015 },
    ]);
  });

  test('no text makes it throw, and what is not wanted is not read', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (noise) => {
        expect(pickSamples(`${noise}\nm{x="1"} 7\n`, new Set(['m'])).at(-1)).toMatchObject({ value: 7 });
        etcdMetricsOf(noise);
      }),
    );
  });
});
