import { type Clock, timestamp } from '../base/clock.ts';
import { AgentError, describeError } from '../base/errors.ts';
import type { AcceptedRisk } from '../etcd/accepted-risk.ts';
import { type EtcdVersion, formatVersion, knownProblems } from '../etcd/known-versions.ts';
import { formatId, type Member, type MemberId, memberById, parseId, votersOf } from '../etcd/member.ts';
import { quorumOf } from '../etcd/quorum.ts';
import { refusalHint } from '../etcd/safety-hint.ts';
import { describeVote } from '../etcd/safety-text.ts';
import { standingOf } from '../etcd/survivors.ts';
import type { DesiredRole } from '../upstream/role.ts';
import type { Agent } from './agent.ts';
import type { ChangeRequest, ClusterChanges, Judged } from './change/cluster-change.ts';
import type { ClusterWatch } from './change/cluster-watch.ts';
import type { Heard, Hearings } from './change/hearing.ts';
import type { Leaving } from './change/leaving.ts';
import type { Answer, MembersView, MemberView } from './control.ts';
import { OrderRefusedError } from './order-refused.ts';
import { pauseNow } from './pause.ts';
import type { ChildPort, ClusterPort } from './ports.ts';
import type { Reports } from './reports.ts';
import type { AgentState } from './state/agent-state.ts';
import type { IdentityRecord } from './state/schemas.ts';
import type { DataVolume } from './volume.ts';

/** What an operator may say with an order that changes the membership. */
export interface MemberOrder {
  readonly memberId: string;
  readonly dryRun: boolean;
  /** Not one more voter may fail afterwards, and that is accepted for this one order. */
  readonly acceptZeroTolerance: boolean;
  /** Goes on without the change record where etcd cannot be written (NOSPACE). */
  readonly withoutRecord: boolean;
}

/** What a change would be, in one sentence with its numbers. */
export interface Preview {
  readonly allowed: boolean;
  readonly text: string;
  readonly hint: string;
}

export interface MemberOrdersOptions {
  readonly agent: Agent;
  readonly cluster: ClusterPort;
  readonly hearings: Hearings;
  readonly changes: ClusterChanges;
  readonly clusterWatch: ClusterWatch;
  readonly leaving: Leaving;
  readonly child: ChildPort;
  readonly state: AgentState;
  readonly volume: DataVolume;
  readonly reports: Reports;
  readonly clock: Clock;
  readonly grantId: () => string;
  /** The peer URL that this node is configured with. */
  readonly peerUrl: () => string;
  /** The configured etcd; undefined while it is not known. */
  readonly version: () => EtcdVersion | undefined;
  /** Where the own etcd serves its clients. */
  readonly clientUrl: () => string;
}

/** Metrics of one member are waited for so long. Unit: ms. */
const metricsMs = 1_500;

/** Orders about members: who is there, a dead one is evicted, an own one is replaced, the last one is retired. */
export class MemberOrders {
  readonly #options: MemberOrdersOptions;

  constructor(options: MemberOrdersOptions) {
    this.#options = options;
  }

  /** Everybody in the list, with what each says of itself now. Throws ClusterSilentError. */
  async members(): Promise<MembersView> {
    const { state, hearings } = this.#options;
    const identity = state.knownIdentity();
    const heard = await hearings.hear({ endpoints: this.#endpoints(), clusterId: identity?.clusterId });
    const voters = votersOf(heard.list.members).length;
    const quorum = quorumOf(voters);
    const views = heard.list.members.map((member) => this.#view(member, heard));
    const answering = views.filter(({ learner, answers }) => !learner && answers === 'counts').length;
    return {
      clusterId: formatId(heard.list.clusterId),
      members: views,
      voters,
      quorum,
      answering,
      // Who does not answer now has failed already.
      faultTolerance: Math.max(0, answering - quorum),
    };
  }

  /**
   * Removes a member whose own agent cannot do it: an unstarted or dead learner, or a voter that no answering voter is connected
   * to. Throws OrderRefusedError, and as ClusterChanges.make does.
   */
  async evict(order: MemberOrder): Promise<Answer> {
    const { state, agent, changes, clusterWatch } = this.#options;
    const identity = state.knownIdentity();
    const memberId = idOf(order.memberId);
    if (identity?.memberId === memberId && !this.#isRemoved(identity)) {
      throw new OrderRefusedError(`member ${order.memberId} is the one of this node`, {
        hint: 'It leaves by its role: `etcd-node-agent leave`. If its data is gone: `etcd-node-agent replace MEMBER-ID`.',
      });
    }
    return await agent.exclusively(async () => {
      this.#refusePaused('members evict');
      const request = await this.#request(identity, memberId, order);
      const judged = await changes.judge(request);
      this.#mustBeListed(judged.heard, memberId);
      await this.#refuseLiving(judged.heard, memberId);
      if (order.dryRun) return this.#dry(judged);
      this.#audit('members evict', order);
      // Asked again while the change record is held: it may have come back meanwhile.
      const beforeAct = async (heard: Heard) => await this.#refuseLiving(heard, memberId);
      const { text } = await changes.make({ ...request, beforeAct });
      clusterWatch.forget();
      return { done: true, dryRun: false, lines: [text, `member ${order.memberId} was removed`] };
    });
  }

  /** The own member's data is lost or must not run: its id is removed through the others, and the node joins anew. */
  async replace(order: MemberOrder): Promise<Answer> {
    const { agent, changes, leaving, child, volume, clusterWatch } = this.#options;
    const identity = this.#ownMember(order.memberId);
    if (child.view().phase !== 'down') {
      throw new OrderRefusedError(`etcd of member ${order.memberId} runs`, {
        hint: 'A member that runs leaves by its role: `etcd-node-agent leave`. Stop it first if its data must not be used.',
      });
    }
    return await agent.exclusively(async () => {
      this.#refusePaused('replace');
      const request = await this.#request(identity, identity.memberId, order);
      const judged = await changes.judge(request);
      if (order.dryRun)
        return this.#dry(judged, 'its data is archived if there is any, and the node joins anew as its role says');
      if (judged.verdict.kind === 'refused') {
        throw new OrderRefusedError(judged.text, { hint: refusalHint(judged.verdict.refusal) });
      }
      this.#audit('replace', order);
      const text = await leaving.leave(identity, false, 'an operator replaced it', {
        provenDead: true,
        accepted: request.accepted,
        withoutRecord: order.withoutRecord,
        afterwards: () => {
          if (volume.look().kind === 'missing') volume.replaceMarker();
        },
      });
      clusterWatch.forget();
      const next = 'its data is archived if there is any, and the node joins anew as its role says';
      return { done: true, dryRun: false, lines: [text, next] };
    });
  }

  /** Ends the cluster of which this node is the last member, and frees the node to found another one. */
  async retire(order: { readonly clusterId: string; readonly dryRun: boolean }): Promise<Answer> {
    const { state, agent, hearings, child, clock } = this.#options;
    const identity = state.knownIdentity();
    if (identity === undefined || formatId(identity.clusterId) !== order.clusterId || this.#isRemoved(identity)) {
      throw new OrderRefusedError(`this node is no member of cluster ${order.clusterId}`, {
        hint: '`etcd-node-agent status` shows its cluster.',
      });
    }
    return await agent.exclusively(async () => {
      this.#refusePaused('retire');
      // What the member itself knows counts also while it is down: it has read who else there is.
      const running = child.view().phase === 'ready';
      const members = running
        ? (await hearings.hear({ endpoints: [this.#options.clientUrl()], clusterId: identity.clusterId })).list.members
        : identity.lastMembers;
      const others = members.filter(({ id }) => id !== identity.memberId);
      if (others.length > 0) {
        throw new OrderRefusedError(
          `cluster ${order.clusterId} has other members: ${others.map(({ id, name }) => `${name || 'unstarted'} (${formatId(id)})`).join(', ')}`,
          { hint: 'Only the last member can retire. This one leaves by its role: `etcd-node-agent leave`.' },
        );
      }
      const lines = [
        `cluster ${order.clusterId} ends: its last member ${formatId(identity.memberId)} is stopped and its data is archived`,
        'this node may found another cluster afterwards',
      ];
      if (order.dryRun) return { done: false, dryRun: true, lines };
      this.#audit('retire', { ...order, memberId: formatId(identity.memberId) });
      const { clusterId, memberId } = identity;
      const because = 'an operator retired the last member';
      state.leave.write({
        state: 'removed',
        clusterId,
        memberId,
        because,
        at: timestamp(clock),
        grantId: this.#options.grantId(),
        retires: true,
      });
      return { done: true, dryRun: false, lines };
    });
  }

  /** What the safety check says now of this node joining through these endpoints; nothing is changed. */
  async previewJoin(endpoints: readonly string[], clusterId: string | undefined): Promise<Preview> {
    const { state, changes, peerUrl } = this.#options;
    const identity = state.knownIdentity();
    if (identity !== undefined && !this.#isRemoved(identity)) {
      throw new OrderRefusedError(`this node is member ${formatId(identity.memberId)} already`, {
        hint: '`etcd-node-agent status` shows its cluster.',
      });
    }
    const judged = await changes.judge({
      change: { kind: 'addLearner', peerUrl: peerUrl() },
      endpoints: endpoints.length > 0 ? endpoints : this.#endpoints(),
      clusterId: clusterId === undefined ? undefined : idOf(clusterId),
      accepted: [],
      force: false,
      self: undefined,
    });
    const preview = previewOf(judged);
    return { ...preview, text: `${preview.text}; ${describeVote(judged.verdict.numbers)}` };
  }

  /** What is known against joining with the configured etcd, one sentence each. */
  versionWarnings(): readonly string[] {
    const version = this.#options.version();
    if (version === undefined) return [];
    return knownProblems(version)
      .filter(({ concerns }) => concerns === 'any' || concerns === 'join')
      .map(({ problem }) => `warning: etcd ${formatVersion(version)}: ${problem}`);
  }

  /** The same of this member leaving. */
  async previewLeave(acceptZeroTolerance: boolean): Promise<Preview> {
    const { state, changes } = this.#options;
    const identity = state.knownIdentity();
    if (identity === undefined || this.#isRemoved(identity)) {
      throw new OrderRefusedError('this node is no member', { hint: '`etcd-node-agent status` shows what it is.' });
    }
    const order = { memberId: formatId(identity.memberId), dryRun: true, acceptZeroTolerance, withoutRecord: false };
    const request = await this.#request(identity, identity.memberId, order);
    const judged = await changes.judge({
      ...request,
      change: { kind: 'remove', memberId: identity.memberId, provenDead: false },
    });
    return previewOf(judged);
  }

  /** What a role would change in the cluster now, in sentences with numbers; empty if nothing. Never throws for a silent cluster. */
  async previewRole({ role, endpoints, clusterId, accept }: DesiredRole): Promise<readonly string[]> {
    const identity = this.#options.state.knownIdentity();
    const isMember = identity !== undefined && !this.#isRemoved(identity);
    if (isMember === (role === 'consensus-member')) return [];
    try {
      const accepts = accept.some(({ kind }) => kind === 'zero-tolerance');
      const preview = isMember ? await this.previewLeave(accepts) : await this.previewJoin(endpoints, clusterId);
      return preview.allowed ? [preview.text] : [preview.text, preview.hint];
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      return [`what it would change in the cluster is not known: ${describeError(error)}`];
    }
  }

  async #request(identity: IdentityRecord | undefined, memberId: MemberId, order: MemberOrder): Promise<ChangeRequest> {
    const { changes } = this.#options;
    const request: ChangeRequest = {
      change: { kind: 'remove', memberId, provenDead: true },
      endpoints: this.#endpoints(),
      clusterId: identity?.clusterId,
      accepted: [],
      force: false,
      self: undefined,
      withoutRecord: order.withoutRecord,
    };
    if (!order.acceptZeroTolerance) return request;
    const { verdict } = await changes.judge(request);
    const accepted: AcceptedRisk = {
      kind: 'zero-tolerance',
      memberId: formatId(memberId),
      listHash: verdict.numbers.listHash,
    };
    return { ...request, accepted: [accepted] };
  }

  /** A mistyped id must not look like a removal. */
  #mustBeListed({ list: { members } }: Heard, memberId: MemberId): void {
    if (memberById(members, memberId) !== undefined) return;
    const known = members.map(({ id, name }) => `${name || 'unstarted'} (${formatId(id)})`).join(', ');
    throw new OrderRefusedError(`the list has no member ${formatId(memberId)}`, { hint: `In the list are: ${known}.` });
  }

  /** A pause forbids changes of the membership, whoever wants them. */
  #refusePaused(what: string): void {
    const pause = pauseNow(this.#options.state, this.#options.clock);
    if (pause === undefined) return;
    throw new OrderRefusedError(
      `an operator has paused membership changes until ${pause.until}, so ${what} is refused`,
      {
        hint: '`etcd-node-agent resume` ends the pause.',
      },
    );
  }

  /**
   * A voter that runs leaves by its own agent; only one that nobody is connected to is taken out by others. A learner has no vote that could
   * be lost, and its own agent may be what is dead.
   */
  async #refuseLiving(heard: Heard, memberId: MemberId): Promise<void> {
    const member = memberById(heard.list.members, memberId);
    if (member === undefined || member.name === '' || member.isLearner) return;
    const hint = 'A member that lives leaves by its own agent: give the order on its node.';
    if (heard.answers.some((answer) => answer.memberId === memberId)) {
      throw new OrderRefusedError(`member ${formatId(memberId)} answers`, { hint });
    }
    const others = votersOf(heard.list.members).filter(({ id }) => id !== memberId);
    const said = await Promise.all(others.map((other) => this.#connections(other)));
    const connected = others.filter((_, index) => said[index]?.has(memberId) === true);
    if (connected.length > 0) {
      const names = connected.map(({ name, id }) => `${name} (${formatId(id)})`).join(', ');
      throw new OrderRefusedError(`member ${formatId(memberId)} does not answer here, but is connected to ${names}`, {
        hint,
      });
    }
    const silent = said.filter((peers) => peers === undefined).length;
    const needed = quorumOf(others.length + 1);
    if (others.length - silent >= Math.min(needed, others.length)) return;
    throw new OrderRefusedError(
      `${others.length - silent} of ${others.length} other voters say that they are not connected to member ${formatId(memberId)}, ${needed} are needed`,
      { hint: 'Bring the other voters back first.' },
    );
  }

  /** A voter that is alone lists no connection at all. */
  async #connections({ clientUrls }: Member): Promise<ReadonlySet<MemberId> | undefined> {
    for (const endpoint of clientUrls) {
      const peers = await this.#options.cluster.activePeers(endpoint, metricsMs).catch(() => undefined);
      if (peers !== undefined) return peers;
    }
    return undefined;
  }

  #dry({ verdict, text }: Judged, then?: string): Answer {
    if (verdict.kind === 'refused') {
      throw new OrderRefusedError(text, { hint: refusalHint(verdict.refusal) });
    }
    return { done: false, dryRun: true, lines: then === undefined ? [text] : [text, then] };
  }

  #ownMember(memberIdText: string): IdentityRecord {
    const identity = this.#options.state.knownIdentity();
    if (identity !== undefined && identity.memberId === idOf(memberIdText) && !this.#isRemoved(identity))
      return identity;
    throw new OrderRefusedError(
      identity === undefined
        ? 'this node is no member'
        : `this node is member ${formatId(identity.memberId)}, not ${memberIdText}`,
      { hint: '`etcd-node-agent status` shows the member id.' },
    );
  }

  #isRemoved({ memberId, clusterId }: IdentityRecord): boolean {
    const stones = this.#options.state.tombstones.read();
    return stones.kind === 'ok' && stones.value.some((one) => one.memberId === memberId && one.clusterId === clusterId);
  }

  #endpoints(): readonly string[] {
    return this.#options.clusterWatch.endpoints(this.#options.state.knownIdentity());
  }

  #view(member: Member, heard: Heard): MemberView {
    const status = heard.statuses.get(member.id);
    const nowMs = this.#options.clock.monotonicMs();
    const { kind } = standingOf(member, { ...heard, nowMs });
    const lag =
      status === undefined || heard.leader === undefined ? null : heard.leader.index - status.raftAppliedIndex;
    return {
      memberId: formatId(member.id),
      name: member.name,
      learner: member.isLearner,
      leader: member.id === heard.leader?.memberId,
      answers: member.isLearner && status !== undefined ? 'counts' : kind,
      activity: heard.activities.get(member.id) ?? 'unknown',
      version: status?.version ?? '',
      dbSizeBytes: status === undefined ? null : Number(status.dbSizeBytes),
      raftAppliedIndex: status === undefined ? null : status.raftAppliedIndex.toString(),
      raftLag: lag === null ? null : Number(lag > 0n ? lag : 0n),
      peerUrls: member.peerUrls,
      clientUrls: member.clientUrls,
    };
  }

  #audit(command: string, { memberId, ...rest }: { readonly memberId: string }): void {
    this.#options.reports.report({
      kind: 'operator.command',
      command,
      detail: [`member ${memberId}`, ...flagsOf(rest)].join(', '),
    });
  }
}

function previewOf({ verdict, text }: Judged): Preview {
  const refused = verdict.kind === 'refused';
  return { allowed: !refused, text, hint: refused ? refusalHint(verdict.refusal) : '' };
}

function flagsOf(flags: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.entries(flags).flatMap(([name, value]) => (value === true && name !== 'dryRun' ? [name] : []));
}

function idOf(text: string): MemberId {
  const id = parseId(text);
  if (id !== undefined) return id;
  throw new OrderRefusedError(`${text} is no member id`, { hint: 'Want hex, as `etcd-node-agent members` shows it.' });
}
