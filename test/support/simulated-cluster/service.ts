/** What a simulated etcd answers to the calls of its clients. */
import { founderMemberId } from '../../../src/etcd/bootstrap-ids.ts';
import type { Member, MemberId } from '../../../src/etcd/member.ts';
import { lateProposal, requestTimeoutMs, type SimulatedEtcd } from './etcd.ts';
import type { Command } from './machine.ts';
import type { Raft } from './raft.ts';
import { isAtLeast, learnerRefuses, type Refusal, refusals } from './refusals.ts';
import { readyShare, refusalToAdd, refusalToPromote, refusalToRemove, type View } from './rules.ts';

/** How a call is answered: once, with a value or a refusal. */
export interface Answering<T> {
  ok(value: T): void;
  no(refusal: Refusal): void;
}

/** A raft of an etcd that serves; what it does not serve is refused before. */
export interface Served {
  readonly etcd: SimulatedEtcd;
  readonly raft: Raft;
  /** When the client gives up. Monotonic, ms. */
  readonly untilMs: number;
}

/** Everything but Status and local reads is refused by a learner. */
export function learnerRefusal({ etcd, raft }: Served): Refusal | undefined {
  return raft.machine.members.get(raft.id)?.isLearner === true ? learnerRefuses(etcd.version) : undefined;
}

export function memberAdd(served: Served, peerUrls: readonly string[], isLearner: boolean, answer: Answering<Member>) {
  const { etcd } = served;
  if (peerUrls.length === 0 || !peerUrls.every(isPeerUrl)) return answer.no(refusals.badPeerUrl);
  const refusal = etcd.args.strict ? refusalToAdd(viewOf(served), isLearner) : undefined;
  if (refusal !== undefined) return answer.no(refusal);
  // As etcd makes it: the same address within the same second gives the same id again.
  const id = founderMemberId(peerUrls, String(Math.floor(etcd.world.wallMs() / 1_000)));
  const member: Member = { id, name: '', peerUrls: [...peerUrls], clientUrls: [], isLearner };
  proposeChange(served, { kind: 'addMember', member }, { ok: () => answer.ok(member), no: answer.no });
}

export function memberRemove(served: Served, id: MemberId, answer: Answering<undefined>) {
  const { etcd, raft } = served;
  const isLearner = raft.machine.members.get(id)?.isLearner === true;
  const refusal = etcd.args.strict ? refusalToRemove(viewOf(served), id, isLearner) : undefined;
  if (refusal !== undefined) return answer.no(refusal);
  proposeChange(served, { kind: 'removeMember', id }, answer);
}

export function memberUpdate(served: Served, id: MemberId, peerUrls: readonly string[], answer: Answering<undefined>) {
  if (peerUrls.length === 0 || !peerUrls.every(isPeerUrl)) return answer.no(refusals.badPeerUrl);
  proposeChange(served, { kind: 'updateMember', id, peerUrls }, answer);
}

/** Only the leader knows how far a learner is; others ask it over the peer side. */
export function memberPromote(served: Served, id: MemberId, answer: Answering<undefined>) {
  const { etcd, raft } = served;
  const { world } = etcd;
  if (raft.role === 'leader') return promoteAsLeader(served, id, answer);
  const until = Math.min(served.untilMs, world.queue.nowMs() + requestTimeoutMs);
  const attempt = () => {
    if (!etcd.running || world.queue.nowMs() >= until)
      return answer.no(raft.leader === 0n ? refusals.noLeader : refusals.requestTimedOut);
    const leading = raft.leader === 0n ? undefined : world.etcdOf(raft.clusterId, raft.leader);
    const peer = leading?.raft;
    if (leading === undefined || peer?.role !== 'leader' || !world.linked(raft, peer) || !world.linked(peer, raft)) {
      world.queue.after(100, attempt);
      return;
    }
    world.queue.after(world.latencyMs(), () =>
      promoteAsLeader({ etcd: leading, raft: peer, untilMs: until }, id, {
        // The answer goes back over the same connection.
        ok: (value) => void (world.linked(peer, raft) && world.queue.after(world.latencyMs(), () => answer.ok(value))),
        no: (refusal) =>
          void (world.linked(peer, raft) && world.queue.after(world.latencyMs(), () => answer.no(refusal))),
      }),
    );
  };
  attempt();
}

function promoteAsLeader(served: Served, id: MemberId, answer: Answering<undefined>) {
  const { etcd, raft } = served;
  const match = raft.progress.get(id);
  if (match === undefined) return answer.no(refusals.memberNotFound);
  if (match / raft.last < readyShare) return answer.no(refusals.learnerNotReady);
  const refusal = etcd.args.strict ? refusalToPromote(viewOf(served)) : undefined;
  if (refusal !== undefined) return answer.no(refusal);
  proposeChange(served, { kind: 'promoteMember', id }, answer);
}

/** Polls every heartbeat who leads; only the client's deadline ends that. */
export function moveLeader({ etcd, raft, untilMs }: Served, target: MemberId, answer: Answering<undefined>) {
  if (raft.role !== 'leader') return answer.no(refusals.notLeader);
  const member = raft.machine.members.get(target);
  if (member === undefined || member.isLearner) return answer.no(refusals.badTransferee);
  if (target !== raft.id) raft.transfer(target);
  const { queue } = etcd.world;
  const poll = () => {
    if (raft.leader === target) answer.ok(undefined);
    else if (etcd.running && queue.nowMs() < untilMs) queue.after(100, poll);
  };
  poll();
}

/** A write, given up by etcd after 7 s. */
export function write({ etcd }: Served, command: Command, answer: Answering<{ revision: bigint; applied: boolean }>) {
  const { queue } = etcd.world;
  propose(etcd, command, queue.nowMs() + requestTimeoutMs, {
    ok: (outcome) => answer.ok(outcome),
    no: answer.no,
  });
  queue.after(requestTimeoutMs, () => answer.no(lateProposal(etcd)));
}

/** The list as a quorum confirms it (`linearizable`), or this member's own. 3.4 knows only its own. */
export function memberList({ etcd }: Served, linearizable: boolean, answer: Answering<readonly Member[]>) {
  const own = () => answer.ok([...etcd.members].map(plain));
  if (!linearizable || !isAtLeast(etcd.version, [3, 5, 0])) return own();
  etcd.readIndex((refusal) => (refusal === undefined ? own() : answer.no(refusal)));
}

/** A change of membership has no time limit of etcd's own: without a quorum it hangs until the client gives up. */
function proposeChange({ etcd, untilMs }: Served, command: Command, answer: Answering<undefined>) {
  propose(etcd, command, untilMs, { ok: () => answer.ok(undefined), no: answer.no });
}

function propose(
  etcd: SimulatedEtcd,
  command: Command,
  untilMs: number,
  answer: Answering<{ revision: bigint; applied: boolean }>,
) {
  etcd.propose(command, untilMs, (outcome) => {
    if (outcome.kind === 'refused') answer.no(outcome.refusal);
    else answer.ok({ revision: outcome.revision, applied: outcome.succeeded });
  });
}

function viewOf({ etcd, raft }: Served): View {
  return {
    version: etcd.version,
    self: raft.id,
    voters: [...raft.machine.members.values()].filter((member) => !member.isLearner),
    nowMs: etcd.world.queue.nowMs(),
    activeSinceMs: (id) => etcd.links.sinceMs(id),
  };
}

/** Scheme, host and port, no path. */
function isPeerUrl(text: string): boolean {
  return /^https?:\/\/[^/:\s]+:\d{1,5}$/.test(text);
}

function plain({ id, name, peerUrls, clientUrls, isLearner }: Member): Member {
  return { id, name, peerUrls: [...peerUrls], clientUrls: [...clientUrls], isLearner };
}
