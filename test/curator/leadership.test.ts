// Goal: one curator acts at a time, nobody acts beyond its lease, and leadership follows that of the raft without flapping.
// Method: the decision alone, a row for each situation; test/real/curator-leader.test.ts has it on real etcd.
import { describe, expect, test } from 'vitest';
import { headerFault, raised } from '../../src/curator/header-guard.ts';
import { type LeadershipSeen, leadershipStep } from '../../src/curator/leadership.ts';

const self = 'n1';
const value = (nodeId: string) => ({ nodeId, address: `${nodeId}:1`, session: 's', since: '2026-01-01T00:00:00.000Z' });
const candidate = (nodeId: string, raftLeader: boolean) => ({ nodeId, address: `${nodeId}:1`, raftLeader });

/** A curator with a lease, and nobody leads. */
function seen(change: Partial<LeadershipSeen>): LeadershipSeen {
  return {
    self,
    readOnly: '',
    noSpace: false,
    mustResign: false,
    leadsForMs: undefined,
    keptAliveMs: 1_000,
    leader: undefined,
    vacantForMs: 0,
    raftLeader: false,
    notRaftLeaderForMs: 60_000,
    candidates: [candidate('n1', false), candidate('n2', false)],
    ...change,
  };
}

/** The same that leads. */
function leads(change: Partial<LeadershipSeen> = {}): LeadershipSeen {
  return seen({ leadsForMs: 5_000, leader: value(self), raftLeader: true, notRaftLeaderForMs: 0, ...change });
}

describe('who does not lead', () => {
  test.each<[string, Partial<LeadershipSeen>, string]>([
    ['takes a lease first', { keptAliveMs: undefined, raftLeader: true }, 'keepAlive'],
    ['47 campaigns at once beside the raft leader', { raftLeader: true, notRaftLeaderForMs: 0 }, 'campaign'],
    ['47 leaves that to whoever leads the raft', { vacantForMs: 3_900 }, 'wait'],
    ['47 but not for ever: the curator beside the raft leader may be dead', { vacantForMs: 4_000 }, 'campaign'],
    ['also where nothing is known of the raft', { raftLeader: undefined, vacantForMs: 4_000 }, 'campaign'],
    ['waits while somebody leads', { leader: value('n2'), raftLeader: true }, 'wait'],
    ['keeps its lease alive meanwhile', { leader: value('n2'), keptAliveMs: 3_000 }, 'keepAlive'],
    ['takes silence for no vacancy', { leader: 'unknown', raftLeader: true, vacantForMs: 60_000 }, 'wait'],
    ['17 clears what an earlier curator of this node left', { leader: value(self) }, 'clearOwn'],
    ['18 does not come back once it is told to end', { mustResign: true, raftLeader: true }, 'wait'],
    ['62 does not campaign with a full database', { noSpace: true, raftLeader: true }, 'wait'],
    ['nor with one that it does not know any more', { readOnly: 'put back', raftLeader: true }, 'wait'],
    ['for which it takes no lease either', { readOnly: 'put back', keptAliveMs: undefined }, 'wait'],
  ])('%s', (_title, change, step) => {
    expect(leadershipStep(seen(change)).kind).toBe(step);
  });
});

describe('who leads', () => {
  const successor = [candidate('n1', false), candidate('n2', true)];
  test.each<[string, Partial<LeadershipSeen>, string]>([
    ['leads on', {}, 'wait'],
    ['keeps its lease alive', { keptAliveMs: 3_000 }, 'keepAlive'],
    ['leads on while etcd does not answer', { leader: 'unknown' }, 'wait'],
    ['and not a moment longer than its lease allows', { leader: 'unknown', leadsForMs: 0 }, 'stepDown'],
    ['steps down for whoever has the key', { leader: value('n2') }, 'stepDown'],
    ['steps down when the key is gone', { leader: undefined }, 'stepDown'],
    ['16 steps down when the cluster is not the one it knew', { readOnly: 'put back' }, 'stepDown'],
    ['18 resigns when it is told to', { mustResign: true }, 'resign'],
    ['47 follows the raft', { raftLeader: false, notRaftLeaderForMs: 2_000, candidates: successor }, 'resign'],
    ['47 not for a moment of it', { raftLeader: false, notRaftLeaderForMs: 1_900, candidates: successor }, 'wait'],
    ['47 nor to where no curator lives', { raftLeader: false, notRaftLeaderForMs: 60_000 }, 'wait'],
    ['62 stays with a full database', { noSpace: true }, 'wait'],
  ])('%s', (_title, change, step) => {
    expect(leadershipStep(leads(change)).kind).toBe(step);
  });
});

describe('the history that is known', () => {
  const known = { clusterId: 0xcn, term: 5n, revision: 100n };
  const header = { clusterId: 0xcn, memberId: 1n, raftTerm: 5n, revision: 100n };
  test.each([
    ['the same', header, undefined],
    ['later', { ...header, raftTerm: 6n, revision: 101n }, undefined],
    ['another cluster', { ...header, clusterId: 0xdn }, /cluster d, and this curator knows cluster c/],
    ['an older revision', { ...header, revision: 99n }, /revision 99, and was at 100 before/],
    ['an older term', { ...header, raftTerm: 4n }, /term 4, and was in 5 before/],
  ])('an answer of %s', (_what, answer, fault) => {
    const said = headerFault(known, answer, 'confirmed');
    if (fault === undefined) expect(said).toBeUndefined();
    else expect(said).toMatch(fault);
  });

  test('a member that was started anew and catches up is not taken for a restored one', () => {
    expect(headerFault(known, { ...header, revision: 3n, raftTerm: 1n }, 'own view')).toBeUndefined();
    expect(headerFault(known, { ...header, clusterId: 0xdn }, 'own view')).toBeDefined();
  });

  test('it only grows', () => {
    expect(raised(known, { ...header, raftTerm: 4n, revision: 200n })).toEqual({ ...known, revision: 200n });
    expect(raised(undefined, header)).toEqual(known);
  });
});
