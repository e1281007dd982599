import { createHash } from 'node:crypto';
import type { Disk } from '../base/disk.ts';
import { AgentError } from '../base/errors.ts';
import type { Random } from '../base/random.ts';
import { founderClusterId, founderMemberId } from '../etcd/bootstrap-ids.ts';
import type { ClusterId, MemberId } from '../etcd/member.ts';
import { formatId } from '../etcd/member.ts';
import { type Founder, founderLine, initialCluster, ownFounder, parseFounders, tokenInput } from './founding.ts';
import type { Host, Owner } from './host.ts';
import type { Layout } from './layout.ts';
import type { DataSeen } from './observed.ts';
import type { ClusterPort } from './ports.ts';
import type { AgentState } from './state/agent-state.ts';
import type { FoundingRecord, IdentityRecord } from './state/schemas.ts';
import type { DataVolume } from './volume.ts';

/** This node may not found a cluster; nothing was changed. */
export class FoundingRefusedError extends AgentError {
  readonly code = 'FOUNDING_REFUSED';
}

export interface ClusterFoundingOptions {
  readonly nodeId: string;
  readonly clusterName: string;
  readonly name: string;
  readonly peerUrl: string;
  readonly clientUrl: string;
  readonly state: AgentState;
  readonly volume: DataVolume;
  readonly layout: Layout;
  readonly disk: Disk;
  readonly host: Host;
  readonly random: Random;
  readonly cluster: ClusterPort;
  /** The user that etcd runs as, if it is not ours. */
  readonly owner: Owner | undefined;
}

/** How long a fellow founder has to answer. Unit: ms. */
const askFounderMs = 2_000;

/**
 * The one founding of this node: `prepared → pending → started → done`, never back. Only a command starts it; no
 * configuration and no role does.
 */
export class ClusterFounding {
  readonly #options: ClusterFoundingOptions;

  constructor(options: ClusterFoundingOptions) {
    this.#options = options;
  }

  /** Makes this node's nonce, or shows the one it has. Throws {@link FoundingRefusedError}. */
  prepare(data: DataSeen): string {
    this.#refuseIfMember(data);
    const record = this.#record();
    if (record !== undefined && record.state !== 'prepared') throw this.#alreadyOrdered(record);
    const nonce = record?.nonce ?? this.#options.random.hex(16);
    if (record === undefined) {
      this.#options.state.founding.write({
        state: 'prepared',
        nonce,
        lines: [],
        token: '',
        clusterId: null,
        memberId: null,
      });
    }
    return founderLine(this.#own(nonce));
  }

  /** What an order to found with these lines would lead to. Throws {@link FoundingRefusedError} or FoundersRefusedError. */
  check(lines: readonly string[] | 'alone' | 'aloneAfterAll', data: DataSeen): FoundingRecord {
    this.#refuseIfMember(data);
    const record = this.#record();
    if (lines === 'alone' && record?.state === 'prepared') {
      throw new FoundingRefusedError(
        'this node was prepared to found together with others, and no list of them is given',
        {
          hint: 'Give the lines of all founders: `etcd-node-agent found --list FILE`. For a cluster of this node alone: `found --alone`.',
        },
      );
    }
    const alone = lines === 'alone' || lines === 'aloneAfterAll';
    const nonce = record?.nonce ?? (alone ? this.#options.random.hex(16) : undefined);
    if (nonce === undefined) {
      throw new FoundingRefusedError('this node has no nonce, so the list cannot have its line', {
        hint: 'Run `etcd-node-agent found prepare` on every founder first and collect the lines.',
      });
    }
    const founders = alone ? [this.#own(nonce)] : parseFounders(lines);
    ownFounder(founders, this.#own(nonce));
    const wanted = this.#ordered(nonce, founders);
    if (record !== undefined && record.state !== 'prepared' && record.token !== wanted.token)
      throw this.#alreadyOrdered(record);
    return record === undefined || record.state === 'prepared' ? wanted : record;
  }

  /** Claims the volume for the founding that is about to be ordered. Harmless if no order follows. */
  takeGround(wanted: FoundingRecord): void {
    if (wanted.state !== 'pending') return;
    this.#options.volume.claim();
    this.#options.disk.ensureDirectory(this.#options.layout.memberDir, 0o755);
  }

  /** Orders the founding: `pending` is durable. Repeating the same order changes nothing. */
  order(wanted: FoundingRecord): void {
    if (wanted.state === 'pending') this.#options.state.founding.write(wanted);
  }

  /**
   * `pending → started`: no fellow founder answers for another cluster, the new data directory carries the founding's
   * mark, the identity is recorded. Safe to repeat. Throws {@link FoundingRefusedError}.
   */
  async begin(data: DataSeen): Promise<void> {
    const { layout, disk, host, owner, state } = this.#options;
    const record = this.#record();
    if (record === undefined || record.clusterId === null || record.memberId === null) {
      throw new FoundingRefusedError('no founding was ordered', { hint: 'Run `etcd-node-agent found`.' });
    }
    if (record.state !== 'pending') return;
    if (data.kind !== 'absent' && data.kind !== 'empty' && data.kind !== 'prepared') {
      throw new FoundingRefusedError(
        `data has appeared in ${layout.dataDir} since the founding was ordered (${data.kind})`,
        {
          hint: 'It is not touched. Find out whose it is and move it away.',
        },
      );
    }
    await this.askFounders(record);
    disk.ensureDirectory(layout.dataDir);
    disk.replace(layout.foundingMark, `${record.token}\n`);
    if (owner !== undefined) for (const path of [layout.dataDir, layout.foundingMark]) host.giveTo(path, owner);
    state.recordIdentity(this.#identity(record, record.clusterId, record.memberId));
    state.founding.write({ ...record, state: 'started' });
  }

  /** `started → done`, right after the first commit. */
  complete(): FoundingRecord {
    const record = this.#record();
    if (record === undefined) throw new FoundingRefusedError('no founding was ordered');
    this.#options.state.founding.write({ ...record, state: 'done' });
    return record;
  }

  /** Whether the data directory carries the mark of this very founding. Throws what the disk throws. */
  carriesMark(): boolean {
    const mark = this.#options.disk.read(this.#options.layout.foundingMark);
    const record = this.#options.state.founding.read();
    return mark !== undefined && record.kind === 'ok' && new TextDecoder().decode(mark).trim() === record.value.token;
  }

  /**
   * Asks every founder's peer address, the own one too: nothing of another cluster may answer there, and nobody who has
   * removed this founder meanwhile. Silence is fine, since founders start in any order. Throws {@link FoundingRefusedError}.
   */
  async askFounders(record: FoundingRecord): Promise<void> {
    if (record.state !== 'pending' || record.clusterId === null) return;
    const expected = record.clusterId;
    await Promise.all(parseFounders(record.lines).map((founder) => this.#askFounder(founder, expected, record)));
  }

  async #askFounder(founder: Founder, expected: ClusterId, record: FoundingRecord): Promise<void> {
    const answer = await this.#options.cluster.peerCluster(founder.peerUrl, askFounderMs).catch(() => undefined);
    if (answer === undefined) return;
    if (answer.clusterId !== expected) {
      throw new FoundingRefusedError(
        `an etcd of cluster ${formatId(answer.clusterId)} answers at ${founder.peerUrl}, where founder ${founder.name} of cluster ${formatId(expected)} should be`,
        {
          hint: 'That cluster exists already. If its etcd is the one of this node: `etcd-node-agent adopt --dry-run`. Otherwise make this node a new member of it, or free the address; see docs/runbook.md, "founding was refused".',
        },
      );
    }
    if (record.memberId === null || answer.memberIds.includes(record.memberId)) return;
    throw new FoundingRefusedError(
      `cluster ${formatId(expected)} runs without this founder: the list at ${founder.peerUrl} lacks member ${formatId(record.memberId)}, which was removed before it ever started`,
      { hint: 'It comes back as a new member. See docs/runbook.md, "a member from scratch".' },
    );
  }

  #record(): FoundingRecord | undefined {
    const { state } = this.#options;
    const reading = state.founding.read();
    if (reading.kind === 'absent') return undefined;
    // The founding of a cluster that ended with this node is over for good, and frees it for another one.
    if (reading.kind === 'ok') return this.#isRetired(reading.value.clusterId) ? undefined : reading.value;
    throw new FoundingRefusedError(reading.because, { hint: 'See docs/runbook.md, "state that cannot be read".' });
  }

  #isRetired(clusterId: ClusterId | null): boolean {
    return clusterId !== null && this.#options.state.retiredClusters().has(clusterId);
  }

  #own(nonce: string): Founder {
    return { name: this.#options.name, peerUrl: this.#options.peerUrl, nonce };
  }

  #ordered(nonce: string, founders: readonly Founder[]): FoundingRecord {
    const token = createHash('sha256').update(tokenInput(founders)).digest('hex');
    const listed = founders.map(({ name, peerUrl }) => ({ name, peerUrls: [peerUrl] }));
    return {
      state: 'pending',
      nonce,
      lines: founders.map(founderLine),
      token,
      clusterId: founderClusterId(listed, token),
      memberId: founderMemberId([this.#options.peerUrl], token),
    };
  }

  #identity(record: FoundingRecord, clusterId: ClusterId, memberId: MemberId): IdentityRecord {
    const founders = parseFounders(record.lines);
    const members = founders.map((founder) => ({
      id: founderMemberId([founder.peerUrl], record.token),
      name: founder.name,
      peerUrls: [founder.peerUrl],
      clientUrls: founder.nonce === record.nonce ? [this.#options.clientUrl] : [],
      isLearner: false,
    }));
    return {
      nodeId: this.#options.nodeId,
      clusterName: this.#options.clusterName,
      clusterId,
      memberId,
      name: this.#options.name,
      peerUrl: this.#options.peerUrl,
      grantId: '',
      initialCluster: initialCluster(founders),
      initialClusterToken: record.token,
      lastVoters: members,
      lastMembers: members,
    };
  }

  #refuseIfMember(data: DataSeen): void {
    const { state } = this.#options;
    const founding = this.#record();
    if (founding !== undefined && founding.state === 'done') throw this.#alreadyOrdered(founding);
    const identity = state.identity.read();
    const retired = identity.kind === 'ok' && this.#isRetired(identity.value.clusterId);
    if (identity.kind !== 'absent' && !retired && founding?.state !== 'started' && founding?.state !== 'pending') {
      throw new FoundingRefusedError('this node is, or was, a member of a cluster', {
        hint: 'A node founds at most once. `etcd-node-agent status` shows its cluster.',
      });
    }
    const tombstones = state.tombstones.read();
    const isOver = ({ clusterId }: { readonly clusterId: ClusterId }) => this.#isRetired(clusterId);
    if (tombstones.kind !== 'absent' && !(tombstones.kind === 'ok' && tombstones.value.every(isOver))) {
      throw new FoundingRefusedError('this node was removed from a cluster; a new cluster beside it would be a split', {
        hint: 'It comes back as a new member of the existing one. See docs/runbook.md, "a member from scratch".',
      });
    }
    if (data.kind === 'absent' || data.kind === 'empty' || data.kind === 'prepared') return;
    if (founding?.state === 'started') return;
    throw new FoundingRefusedError(
      data.kind === 'member'
        ? `the data directory holds member ${formatId(data.memberId)} of cluster ${formatId(data.clusterId)}`
        : `the data directory is not empty (${'because' in data ? data.because : data.kind})`,
      { hint: `Data is never overwritten. Take it over with \`adopt\`, or move ${this.#options.layout.dataDir} away.` },
    );
  }

  #alreadyOrdered(record: FoundingRecord): FoundingRefusedError {
    return new FoundingRefusedError(
      record.state === 'done'
        ? `this node founded cluster ${formatId(record.clusterId ?? 0n)} already`
        : `a founding is ${record.state} on this node, with other founders`,
      { hint: 'A node founds at most once; `etcd-node-agent status` shows how far it is.' },
    );
  }
}
