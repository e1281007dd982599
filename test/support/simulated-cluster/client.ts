import { status } from '@grpc/grpc-js';
import { EtcdCallError } from '../../../src/etcd/call.ts';
import type { MemberStatus } from '../../../src/etcd/client.ts';
import { type CallWishes, callDeadlines } from '../../../src/etcd/deadlines.ts';
import type { ConditionalWrite, EtcdKey } from '../../../src/etcd/keys.ts';
import type { Member, MemberId, MemberList } from '../../../src/etcd/member.ts';
import { type AnswerHeader, sortedById } from '../../../src/etcd/member-list.ts';
import type { Command } from './machine.ts';
import type { SimulatedNode } from './node.ts';
import {
  deadlineExceeded,
  isAtLeast,
  nobodyListens,
  type Refusal,
  resetAtDeadline,
  saidAtDeadline,
  versionOf,
} from './refusals.ts';
import {
  type Answering,
  learnerRefusal,
  memberAdd,
  memberList,
  memberPromote,
  memberRemove,
  memberUpdate,
  moveLeader,
  type Served,
  write,
} from './service.ts';
import type { World } from './world.ts';

export interface SimulatedClientOptions {
  /** The node that it runs on; a machine besides the nodes if left out. */
  readonly from?: SimulatedNode;
  /** As with the real client: unknown or 3.4 puts a linearizable read before a linearizable list. */
  readonly etcdVersion?: string;
}

/** Speaks to a simulated etcd as EtcdClient does to a real one: the same calls, answers and errors. */
export class SimulatedClient {
  readonly endpoint: string;
  readonly keys: SimulatedKeys;
  readonly #node: SimulatedNode;
  readonly #world: World;
  readonly #from: SimulatedNode | undefined;
  readonly #readsBefore: boolean;

  constructor(node: SimulatedNode, world: World, options: SimulatedClientOptions) {
    this.#node = node;
    this.#world = world;
    this.#from = options.from;
    this.#readsBefore = options.etcdVersion === undefined || !isAtLeast(versionOf(options.etcdVersion), [3, 5, 0]);
    this.endpoint = node.clientUrl;
    this.keys = new SimulatedKeys(this);
  }

  close() {}

  async memberList(how: { readonly linearizable: boolean } & CallWishes): Promise<MemberList> {
    const until = this.#world.queue.nowMs() + (how.deadlineMs ?? callDeadlines.listMs);
    if (how.linearizable && this.#readsBefore) {
      await this.linearizableRead({ ...how, deadlineMs: Math.max(1, until - this.#world.queue.nowMs()) });
    }
    const left = { ...how, deadlineMs: Math.max(1, until - this.#world.queue.nowMs()) };
    const { header, value } = await this.call<readonly Member[]>(
      'MemberList',
      left,
      callDeadlines.listMs,
      (served, answer) => memberList(served, how.linearizable, answer),
    );
    return listOf(header, value, how.linearizable);
  }

  async addLearner(peerUrl: string, how: CallWishes = {}): Promise<{ member: Member; list: MemberList }> {
    return this.#add(peerUrl, true, how);
  }

  /** What the agent never does; the conformance suite asks what happens then. */
  async addVoter(peerUrl: string, how: CallWishes = {}): Promise<{ member: Member; list: MemberList }> {
    return this.#add(peerUrl, false, how);
  }

  async removeMember(id: MemberId, how: CallWishes = {}): Promise<MemberList> {
    return this.#change('MemberRemove', how, (served, answer) => memberRemove(served, id, answer));
  }

  async promoteMember(id: MemberId, how: CallWishes = {}): Promise<MemberList> {
    return this.#change('MemberPromote', how, (served, answer) => memberPromote(served, id, answer));
  }

  async updateMember(id: MemberId, peerUrls: readonly string[], how: CallWishes = {}): Promise<MemberList> {
    return this.#change('MemberUpdate', how, (served, answer) => memberUpdate(served, id, peerUrls, answer));
  }

  async moveLeader(target: MemberId, how: CallWishes = {}): Promise<void> {
    await this.call<undefined>('MoveLeader', how, callDeadlines.moveLeaderMs, (served, answer) =>
      moveLeader(served, target, answer),
    );
  }

  async status(how: CallWishes = {}): Promise<MemberStatus> {
    const serve = ({ etcd, raft }: Served, answer: Answering<Omit<MemberStatus, 'header'>>) => {
      const self = raft.machine.members.get(raft.id);
      if (self === undefined) return etcd.panicAsUnknownToItself();
      const isSixth = isAtLeast(etcd.version, [3, 6, 0]);
      answer.ok({
        version: etcd.version.join('.'),
        isLearner: self.isLearner,
        leaderId: raft.leader === 0n ? undefined : raft.leader,
        raftTerm: BigInt(raft.term),
        raftIndex: BigInt(raft.data.commit),
        raftAppliedIndex: BigInt(raft.applied),
        dbSizeBytes: 20_480n,
        dbSizeInUseBytes: 16_384n,
        errors: raft.leader === 0n ? ['etcdserver: no leader'] : [],
        dbQuotaBytes: isSixth ? 2_147_483_648n : undefined,
        storageVersion: isSixth ? `${etcd.version[0]}.${etcd.version[1]}.0` : undefined,
      });
    };
    const { header, value } = await this.call('Status', how, callDeadlines.statusMs, serve, 'alsoLearner');
    return { header, ...value };
  }

  async linearizableRead(how: CallWishes = {}): Promise<AnswerHeader> {
    return (await this.read(() => undefined, how)).header;
  }

  async serializableRead(how: CallWishes = {}): Promise<AnswerHeader> {
    const serve = (_served: Served, answer: Answering<undefined>) => answer.ok(undefined);
    return (await this.call('Range', how, callDeadlines.keysMs, serve, 'alsoLearner')).header;
  }

  /** A linearizable read of what `look` looks at. */
  read<T>(look: (served: Served) => T, how: CallWishes): Promise<{ header: AnswerHeader; value: T }> {
    return this.call<T>('Range', how, callDeadlines.keysMs, (served, answer) =>
      served.etcd.readIndex((refusal) => (refusal === undefined ? answer.ok(look(served)) : answer.no(refusal))),
    );
  }

  /** A write of one key. */
  async write(name: string, command: Command, how: CallWishes): Promise<ConditionalWrite> {
    const { header, value } = await this.call<{ applied: boolean }>(name, how, callDeadlines.keysMs, (served, answer) =>
      write(served, command, answer),
    );
    return { applied: value.applied, header };
  }

  /** One call: it gets there or not, is served or waits, and its answer comes back or not. */
  call<T>(
    name: string,
    how: CallWishes,
    otherwiseMs: number,
    serve: (served: Served, answer: Answering<T>) => void,
    learner: 'refuses' | 'alsoLearner' = 'refuses',
  ): Promise<{ header: AnswerHeader; value: T }> {
    const { queue } = this.#world;
    const deadlineMs = how.deadlineMs ?? otherwiseMs;
    const untilMs = queue.nowMs() + deadlineMs;
    const { promise, resolve, reject } = Promise.withResolvers<{ header: AnswerHeader; value: T }>();
    const waiting: Waiting = { served: undefined };
    const client = this.#once<{ header: AnswerHeader; value: T }>(name, resolve, reject);
    const cancelDeadline = queue.after(deadlineMs, () =>
      client.no(this.#saidAtDeadline(name, waiting) ?? deadlineExceeded(deadlineMs)),
    );
    promise.then(cancelDeadline, cancelDeadline);
    const onAbort = () => client.no({ code: status.CANCELLED, details: 'Cancelled on client' });
    how.signal?.addEventListener('abort', onAbort, { once: true });
    queue.after(this.#world.latencyMs(), () => this.#arrive({ name, untilMs, learner, waiting }, serve, client));
    return promise;
  }

  /** The client's end of a call: the first answer counts. */
  #once<A extends { readonly header: AnswerHeader }>(
    name: string,
    resolve: (answer: A) => void,
    reject: (error: EtcdCallError) => void,
  ): Answering<A> {
    let over = false;
    const first = (what: string, act: () => void) => {
      if (over) return;
      over = true;
      this.#world.note(this.#node.name, `${name} ${what}`);
      act();
    };
    return {
      ok: (answer) => first(`at ${answer.header.revision}`, () => resolve(answer)),
      no: ({ code: grpcCode, details }) =>
        first(`refused ${grpcCode}`, () =>
          reject(new EtcdCallError({ call: name, endpoint: this.endpoint, grpcCode, details })),
        ),
    };
  }

  #arrive<T>(
    { name, untilMs, learner, waiting }: Call,
    serve: (served: Served, answer: Answering<T>) => void,
    client: Answering<{ header: AnswerHeader; value: T }>,
  ) {
    const { etcd } = this.#node;
    if (!this.#world.open(this.#from, this.#node) || !this.#world.open(this.#node, this.#from)) return;
    if (etcd === undefined || !etcd.running || !etcd.listening) return client.no(nobodyListens(this.endpoint));
    const answer = this.#answering(name, client);
    etcd.calls.add(answer.no);
    etcd.whenServing(untilMs, () => {
      const { raft } = etcd;
      if (raft === undefined) return;
      const served: Served = { etcd, raft, untilMs };
      waiting.served = served;
      const refusal = learner === 'refuses' ? learnerRefusal(served) : undefined;
      if (refusal !== undefined) return answer.no(refusal);
      serve(served, {
        ok: (value) => {
          const { clusterId, id: memberId, term, machine } = raft;
          const header = { clusterId, memberId, revision: machine.revision, raftTerm: BigInt(term) };
          answer.ok({ header, value });
        },
        no: answer.no,
      });
    });
  }

  /** etcd is told the deadline too: now and then it answers first, in words of its own. */
  #saidAtDeadline(name: string, { served }: Waiting): Refusal | undefined {
    const { random } = this.#world;
    if (served === undefined || !random.chance(0.25)) return undefined;
    const { etcd, raft } = served;
    if (!etcd.running || etcd.frozen || !this.#world.open(etcd.node, this.#from)) return undefined;
    if (isAtLeast(etcd.version, [3, 5, 30]) && random.chance(0.5)) return resetAtDeadline;
    return saidAtDeadline(name, etcd.version, raft.leader !== 0n);
  }

  /** The way back: an answer arrives a moment later, if it does. */
  #answering<A>(name: string, client: Answering<A>): Answering<A> {
    let answered = false;
    const back = (arrive: () => void) => {
      if (answered) return;
      answered = true;
      this.#node.etcd?.calls.delete(no);
      if (this.#world.lostAnswers.delete(`${this.#node.name} ${name}`)) return;
      this.#world.queue.after(this.#world.latencyMs(), () => {
        if (this.#world.open(this.#node, this.#from)) arrive();
      });
    };
    const no = (refusal: Refusal) => back(() => client.no(refusal));
    return { ok: (value) => back(() => client.ok(value)), no };
  }

  async #add(peerUrl: string, isLearner: boolean, how: CallWishes): Promise<{ member: Member; list: MemberList }> {
    const { header, value } = await this.call<{ member: Member; members: readonly Member[] }>(
      'MemberAdd',
      how,
      callDeadlines.changeMs,
      (served, answer) =>
        memberAdd(served, [peerUrl], isLearner, {
          ok: (member) => answer.ok({ member, members: served.etcd.members }),
          no: answer.no,
        }),
    );
    return { member: value.member, list: listOf(header, value.members, true) };
  }

  async #change(
    name: string,
    how: CallWishes,
    change: (served: Served, answer: Answering<undefined>) => void,
  ): Promise<MemberList> {
    const { header, value } = await this.call<readonly Member[]>(name, how, callDeadlines.changeMs, (served, answer) =>
      change(served, { ok: () => answer.ok(served.etcd.members), no: answer.no }),
    );
    return listOf(header, value, true);
  }
}

/** One call on its way. */
interface Call {
  readonly name: string;
  readonly untilMs: number;
  readonly learner: 'refuses' | 'alsoLearner';
  readonly waiting: Waiting;
}

/** Where a call waits, once it has arrived. */
interface Waiting {
  served: Served | undefined;
}

/** Keys and values, as EtcdKeys has them. */
export class SimulatedKeys {
  readonly #client: SimulatedClient;

  constructor(client: SimulatedClient) {
    this.#client = client;
  }

  async get(key: string, how: CallWishes = {}): Promise<EtcdKey | undefined> {
    return (await this.#client.read(({ raft }) => raft.machine.keys.get(key), how)).value;
  }

  async list(prefix: string, how: CallWishes = {}): Promise<readonly EtcdKey[]> {
    const look = ({ raft }: Served) => {
      const found = [...raft.machine.keys.values()].filter(({ key }) => key.startsWith(prefix));
      return found.sort((a, b) => (a.key < b.key ? -1 : 1));
    };
    return (await this.#client.read(look, how)).value;
  }

  async put(key: string, value: string, how: CallWishes = {}): Promise<AnswerHeader> {
    return (await this.#client.write('Put', { kind: 'put', key, value }, how)).header;
  }

  create(key: string, value: string, how: CallWishes = {}): Promise<ConditionalWrite> {
    return this.#client.write('Txn', { kind: 'txn', key, ifModRevision: 0n, value }, how);
  }

  replace({ key, modRevision }: EtcdKey, value: string, how: CallWishes = {}): Promise<ConditionalWrite> {
    return this.#client.write('Txn', { kind: 'txn', key, ifModRevision: modRevision, value }, how);
  }

  remove({ key, modRevision }: EtcdKey, how: CallWishes = {}): Promise<ConditionalWrite> {
    return this.#client.write('Txn', { kind: 'txn', key, ifModRevision: modRevision, value: undefined }, how);
  }
}

function listOf(header: AnswerHeader, members: readonly Member[], linearizable: boolean): MemberList {
  const plain = members.map(({ id, name, peerUrls, clientUrls, isLearner }) => ({
    id,
    name,
    peerUrls,
    clientUrls,
    isLearner,
  }));
  return { clusterId: header.clusterId, answeredBy: header.memberId, members: sortedById(plain), linearizable };
}
