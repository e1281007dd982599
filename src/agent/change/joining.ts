import { type Clock, timestamp } from '../../base/clock.ts';
import type { Disk } from '../../base/disk.ts';
import { AgentError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import {
  type ClusterId,
  formatId,
  type Member,
  type MemberId,
  type MemberList,
  memberById,
  votersOf,
} from '../../etcd/member.ts';
import type { LearnerConsent } from '../../etcd/safety-question.ts';
import type { Effects } from '../effects.ts';
import type { Host, Owner } from '../host.ts';
import type { Layout } from '../layout.ts';
import type { ClusterPort } from '../ports.ts';
import type { AgentState } from '../state/agent-state.ts';
import type { IdentityRecord, JoinRecord } from '../state/schemas.ts';
import type { DataVolume } from '../volume.ts';
import type { ChangeRequest, ClusterChanges } from './cluster-change.ts';
import type { Heard, Hearings } from './hearing.ts';

/** The join cannot go on as it stands; nothing was changed. */
export class JoinRefusedError extends AgentError {
  readonly code = 'JOIN_REFUSED';
}

export interface JoiningOptions {
  readonly nodeId: string;
  readonly clusterName: string;
  readonly name: string;
  readonly peerUrl: string;
  readonly state: AgentState;
  readonly volume: DataVolume;
  readonly layout: Layout;
  readonly disk: Disk;
  readonly host: Host;
  readonly owner: Owner | undefined;
  readonly random: Random;
  readonly clock: Clock;
  readonly log: Log;
  readonly effects: Effects;
  readonly cluster: ClusterPort;
  readonly hearings: Hearings;
  readonly changes: ClusterChanges;
  readonly endpoints: () => readonly string[];
  readonly grantId: () => string;
  /** The cluster that the role names; undefined if it names none. */
  readonly clusterId: () => ClusterId | undefined;
}

/** How long a peer URL has to answer which cluster it belongs to. Unit: ms. */
const askPeerMs = 2_000;

/** This node's way into a cluster: `intended → added → started → done`. */
export class Joining {
  readonly #options: JoiningOptions;

  constructor(options: JoiningOptions) {
    this.#options = options;
  }

  /** Adds the learner; the intent is on disk before. What it became is read from the list in the next turn. */
  async addLearner(): Promise<void> {
    const { changes, peerUrl, log } = this.#options;
    const { text } = await changes.make({
      ...this.#request(),
      change: { kind: 'addLearner', peerUrl },
      beforeAct: (heard) => this.#intend(heard),
    });
    log.info({ text }, 'this node was added to the cluster as a learner');
  }

  /** The learner that carries our URL and our intent becomes this node's member. Throws {@link JoinRefusedError}. */
  async takeUp(memberId: MemberId): Promise<void> {
    const { hearings, effects, state, volume, log, clock } = this.#options;
    const join = this.#record();
    const heard = await hearings.hear({ endpoints: this.#options.endpoints(), clusterId: join.clusterId });
    const mine = memberById(heard.list.members, memberId);
    if (mine === undefined || mine.name !== '' || !mine.isLearner || !mine.peerUrls.includes(join.peerUrl)) {
      throw new JoinRefusedError(`member ${formatId(memberId)} is not an unstarted learner at ${join.peerUrl}`, {
        hint: 'The agent reads the list again.',
      });
    }
    effects.do('join.claim', () => volume.claim());
    // The identity last: without it the next turn does all of this again.
    effects.do('join.added', () =>
      state.join.write({ ...join, state: 'added', memberId, grantId: this.#options.grantId(), at: timestamp(clock) }),
    );
    effects.do('join.identity', () => state.recordIdentity(this.#identity(heard.list, mine)));
    log.info({ member: formatId(memberId), cluster: formatId(heard.list.clusterId) }, 'this node has a member to run');
  }

  /** `added → started`: the new data directory carries the mark of this join. Safe to repeat. */
  begin(): void {
    const { effects, disk, layout, host, owner, state } = this.#options;
    const join = this.#record();
    effects.do('join.mark', () => {
      disk.ensureDirectory(layout.dataDir, 0o700);
      disk.replace(layout.joinMark, `${join.operation}\n`);
      if (owner !== undefined) for (const path of [layout.dataDir, layout.joinMark]) host.giveTo(path, owner);
    });
    effects.do('join.started', () => state.join.write({ ...join, state: 'started' }));
  }

  /** The identity with the start arguments of this moment: etcd joins only with the very list that the cluster has. */
  async refreshArguments(identity: IdentityRecord): Promise<IdentityRecord> {
    const { hearings, state, endpoints } = this.#options;
    const { list } = await hearings.hear({ endpoints: endpoints(), clusterId: identity.clusterId });
    if (memberById(list.members, identity.memberId) === undefined) {
      throw new JoinRefusedError(`member ${formatId(identity.memberId)} of this node is not in the list any more`, {
        hint: 'The agent asks the other members whether it was removed.',
      });
    }
    await this.#comparePeers(list, identity);
    const fresh = {
      ...this.#identity(list, {
        ...identity,
        id: identity.memberId,
        name: '',
        peerUrls: [identity.peerUrl],
        clientUrls: [],
        isLearner: true,
      }),
      grantId: identity.grantId,
    };
    state.recordIdentity(fresh);
    return fresh;
  }

  /** `started → done`: from now on the data alone says which member this is. */
  complete(): void {
    const { effects, state } = this.#options;
    const join = this.#record();
    effects.do('join.done', () => state.join.write({ ...join, state: 'done' }));
  }

  async promote(identity: IdentityRecord, consent: LearnerConsent): Promise<void> {
    const { changes, log } = this.#options;
    const { text } = await changes.make({
      ...this.#request(),
      change: { kind: 'promote', memberId: identity.memberId, consent },
    });
    log.info({ text }, 'this member has its vote');
  }

  /** Takes an unstarted learner of ours out again, if there is one, and forgets the intent. */
  async cancel(memberId: MemberId | undefined): Promise<void> {
    const { changes, effects, state, log } = this.#options;
    const join = this.#record();
    const giveUp = () => effects.do('join.giveUp', () => state.join.write({ ...join, state: 'givenUp' }));
    // Also with nothing to remove: an add that timed out may be applied later, and its record is resolved first.
    await changes.make({
      ...this.#request(),
      clusterId: join.clusterId,
      change: { kind: 'remove', memberId: memberId ?? 0n, provenDead: true },
      afterwards: giveUp,
    });
    log.info({}, 'the join was cancelled');
  }

  /** The learner that never started is out again; its node joins anew after a rest. */
  expired(): void {
    const { effects, state, clock } = this.#options;
    const join = this.#record();
    effects.do('join.expired', () => state.join.write({ ...join, state: 'expired', at: timestamp(clock) }));
  }

  /** Whether the data directory carries the mark of this join. */
  carriesMark(): boolean {
    const { disk, layout, state } = this.#options;
    const join = state.join.read();
    const mark = disk.read(layout.joinMark);
    return join.kind === 'ok' && mark !== undefined && new TextDecoder().decode(mark).trim() === join.value.operation;
  }

  #request(): Omit<ChangeRequest, 'change'> {
    const { endpoints, clusterId, state } = this.#options;
    const join = state.join.read();
    const begun = join.kind === 'ok' && !over.has(join.value.state);
    return {
      endpoints: endpoints(),
      clusterId: begun ? join.value.clusterId : clusterId(),
      accepted: [],
      force: false,
      self: undefined,
    };
  }

  #intend({ list }: Heard): void {
    const { effects, state, random, clock, peerUrl, grantId } = this.#options;
    effects.do('join.intend', () =>
      state.join.write({
        state: 'intended',
        operation: random.hex(16),
        clusterId: list.clusterId,
        peerUrl,
        memberId: null,
        grantId: grantId(),
        at: timestamp(clock),
      }),
    );
  }

  /** An address that was given to another cluster would let etcd join that one. Silence is no answer. */
  async #comparePeers(list: MemberList, identity: IdentityRecord): Promise<void> {
    const urls = list.members
      .filter(({ id, name }) => id !== identity.memberId && name !== '')
      .flatMap(({ peerUrls }) => peerUrls);
    await Promise.all(
      urls.map(async (url) => {
        const answer = await this.#options.cluster.peerCluster(url, askPeerMs).catch(() => undefined);
        if (answer === undefined || answer.clusterId === identity.clusterId) return;
        throw new JoinRefusedError(
          `${url} answers for cluster ${formatId(answer.clusterId)}, and this node joins cluster ${formatId(identity.clusterId)}`,
          { hint: 'That address belongs to two clusters. Correct it before this node joins.' },
        );
      }),
    );
  }

  #identity(list: MemberList, mine: Member): IdentityRecord {
    const { nodeId, clusterName, name, peerUrl, grantId } = this.#options;
    const members = list.members.map((member) => plain(member.id === mine.id ? { ...member, name } : member));
    return {
      nodeId,
      clusterName,
      clusterId: list.clusterId,
      memberId: mine.id,
      name,
      peerUrl,
      grantId: grantId(),
      initialCluster: initialCluster(list.members, mine.id, name),
      // etcd ignores it when it joins; it must only not be empty.
      initialClusterToken: formatId(list.clusterId),
      lastVoters: votersOf(list.members).map(plain),
      lastMembers: members,
    };
  }

  #record(): JoinRecord {
    const reading = this.#options.state.join.read();
    if (reading.kind === 'ok') return reading.value;
    throw new JoinRefusedError('no join is recorded on this node', { hint: 'The agent plans anew.' });
  }
}

const over: ReadonlySet<JoinRecord['state']> = new Set(['done', 'givenUp', 'expired']);

/** `name=peerURL,…` of everybody in the list: etcd refuses to join with fewer or more. Names are not compared. */
function initialCluster(members: readonly Member[], ownId: MemberId, ownName: string): string {
  return members
    .flatMap((member) => {
      const name =
        member.id === ownId ? ownName : member.name === '' ? `unstarted-${formatId(member.id)}` : member.name;
      return member.peerUrls.map((url) => `${name}=${url}`);
    })
    .join(',');
}

function plain(member: Member): IdentityRecord['lastMembers'][number] {
  return { ...member, peerUrls: [...member.peerUrls], clientUrls: [...member.clientUrls] };
}
