import { membershipChanges } from '../../src/agent/changes.ts';
import type { AgentEvent, Certainty } from '../../src/agent/events.ts';
import { nothingReported, type Reported, withFact } from '../../src/agent/reported.ts';
import { gapKind, type IncomingReport } from '../../src/curator/incoming-report.ts';
import type { NodeReport } from '../../src/curator/membership-fact.ts';
import type { Member } from '../../src/etcd/member.ts';

/** A report of a model node, as it goes to the curator. */
export type ModelReport = IncomingReport & Omit<NodeReport, 'forked'>;

/** All that a node knows; a copy of it is a snapshot of its machine. */
interface NodeState {
  readonly stream: string;
  readonly reports: readonly ModelReport[];
  readonly reported: Reported;
  readonly order: number;
  /** How far the curator has confirmed each stream. */
  readonly acked: Readonly<Record<string, number>>;
  /** Whether it has told of its member: that it founded, joined, was removed. */
  readonly told: readonly string[];
}

const empty: NodeState = { stream: '', reports: [], reported: nothingReported, order: 0, acked: {}, told: [] };

/** A node: it looks at the list now and then, by the agent's own code, and reports what has changed. */
export class ModelNode {
  readonly nodeId: string;
  /** Hex. The member that it runs; undefined: it has none, and hears the list from others. */
  memberId: string | undefined;
  #state: NodeState = empty;
  #copy: NodeState = empty;
  #streams = 0;
  #ids = 0;
  /** Whether its reports say in which order the changes came. */
  readonly #tellsOrder: boolean;
  #isFounder: boolean;

  constructor(nodeId: string, founderId: string | undefined, tellsOrder: boolean) {
    this.nodeId = nodeId;
    this.memberId = founderId;
    this.#isFounder = founderId !== undefined;
    this.#tellsOrder = tellsOrder;
    this.#openStream();
  }

  /** Reads the list, as far as its own member lets it, and reports the changes. */
  look(members: readonly Member[]): void {
    const own = members.find(({ id }) => id.toString(16) === this.memberId);
    if (this.memberId !== undefined && own === undefined) {
      this.#tellRemoved();
      return;
    }
    if (own?.isLearner === true) {
      this.#tellOnce('member.joined', own);
      return;
    }
    const list = { clusterId: 0xcn, answeredBy: own?.id ?? 1n, members, linearizable: true };
    const changes = membershipChanges(this.#state.reported, list, own?.id);
    const order = this.#state.order + 1;
    for (const event of changes) this.#report(event, this.#tellsOrder ? order : 0);
    this.#state = { ...this.#state, order };
    // After the first list, as the agent does.
    if (this.#isFounder && own !== undefined) this.#tellOnce('cluster.founded', own);
  }

  /** The agent lost what it knew of its history: a new stream begins, and all members look new. */
  loseState(): void {
    const { stream, reports, acked } = this.#state;
    this.#state = { ...empty, reports, acked };
    this.#openStream({ stream, seq: lastOf(reports, stream) });
  }

  /** Its outbox was full: what was not sent yet is gone, except for what tells so. */
  dropUnsent(): void {
    const { stream, reports, acked } = this.#state;
    const from = (acked[stream] ?? 0) + 1;
    const seq = lastOf(reports, stream);
    const opens = from === 1 ? 1 : 0;
    if (seq < from + opens) return;
    const gone = (one: ModelReport) => one.stream === stream && one.seq >= from + opens;
    const gap = { ...this.#next(gapKind, { because: 'full', missing: [] }), seq, fromSeq: from + opens };
    this.#state = { ...this.#state, reports: [...reports.filter((one) => !gone(one)), gap] };
  }

  save(): void {
    this.#copy = this.#state;
  }

  /** The whole machine as it was. Its member is what it is. */
  setBack(): void {
    if (this.#copy !== empty) this.#state = this.#copy;
  }

  /** The curator asked for a new stream. */
  leaveStream(): void {
    const { stream, reports } = this.#state;
    this.#openStream({ stream, seq: lastOf(reports, stream) });
  }

  get today(): string {
    return this.#state.stream;
  }

  /** The streams in order, each with its last number and id. */
  get streams(): readonly { readonly stream: string; readonly lastSeq: number; readonly lastId: string }[] {
    const last = new Map<string, { stream: string; lastSeq: number; lastId: string }>();
    for (const { stream, seq, id } of this.#state.reports) last.set(stream, { stream, lastSeq: seq, lastId: id });
    return [...last.values()];
  }

  idOf(stream: string, seq: number): string | undefined {
    return this.#state.reports.find((one) => one.stream === stream && one.seq === seq)?.id;
  }

  /** The next reports of one stream that wait. */
  page(limit: number): readonly ModelReport[] {
    const waiting = this.#state.reports.filter(({ stream, seq }) => seq > (this.#state.acked[stream] ?? 0));
    const of = waiting.filter(({ stream }) => stream === waiting[0]?.stream);
    return of.slice(0, limit);
  }

  /** The curator has so much of a stream; also less than it said before. */
  acked(stream: string, seq: number): void {
    this.#state = { ...this.#state, acked: { ...this.#state.acked, [stream]: seq } };
  }

  #openStream(previous?: { readonly stream: string; readonly seq: number }): void {
    this.#state = { ...this.#state, stream: `${this.nodeId}s${++this.#streams}` };
    if (previous !== undefined) this.#append(this.#next(gapKind, { because: 'lost', missing: [], previous }));
  }

  #tellOnce(kind: 'member.joined' | 'cluster.founded', own: Member): void {
    const memberId = own.id.toString(16);
    if (this.#state.told.includes(kind + memberId)) return;
    this.#append(this.#next(kind, { clusterId: 'c', memberId, foundingId: 'f' }));
    this.#state = { ...this.#state, told: [...this.#state.told, kind + memberId] };
  }

  /** By its own step, whenever it hears of it: the report says nothing of order. */
  #tellRemoved(): void {
    const { memberId = '' } = this;
    const known = this.#state.reported.members?.[memberId];
    // As it was when this node took it up: it founded, or it joined as a learner.
    const member = known ?? { memberId, name: '', peerUrls: [], learner: !this.#isFounder };
    if (!this.#state.reported.removedSelves.includes(memberId))
      this.#report({ kind: 'member.removed', member, self: true, evidence: [] }, 0);
    this.memberId = undefined;
    this.#isFounder = false;
  }

  #report(event: AgentEvent, order: number): void {
    const { kind, ...data } = event;
    this.#append(this.#next(kind, order === 0 ? data : { ...data, order }));
    this.#state = { ...this.#state, reported: withFact(this.#state.reported, event) };
  }

  #next(kind: string, data: object): ModelReport {
    const { stream, reports } = this.#state;
    const seq = lastOf(reports, stream) + 1;
    const id = `${this.nodeId}-${++this.#ids}`;
    const certainty: Certainty = 'observed';
    const at = '2026-01-01T00:00:00.000Z';
    const place = { nodeId: this.nodeId, stream, seq, fromSeq: seq, id };
    return { ...place, kind, certainty, at, clusterId: 'c', memberId: this.memberId ?? '', data };
  }

  #append(report: ModelReport): void {
    this.#state = { ...this.#state, reports: [...this.#state.reports, report] };
  }
}

function lastOf(reports: readonly ModelReport[], stream: string): number {
  return reports.findLast((one) => one.stream === stream)?.seq ?? 0;
}
