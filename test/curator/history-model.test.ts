// Goal: every committed change stands in the history exactly once and in order, and nothing else does; lost: 0.
// Method: random changes of a model cluster; up to five nodes that look at it by the agent's own code, at different times; their reports
// through the intake, late, repeated, with gaps, new streams, forks, and a curator that is set back; the history against the commits.

import fc from 'fast-check';
import { beforeEach, expect, test } from 'vitest';
import { emptyHistory, learnOwner, takeFact } from '../../src/curator/history.ts';
import type { History } from '../../src/curator/history-draft.ts';
import { witnessesOf } from '../../src/curator/history-entry.ts';
import { inOrder } from '../../src/curator/history-order.ts';
import { emptyStream, judgeBatch, type StreamRecord } from '../../src/curator/intake.ts';
import { type MembershipFact, readFact } from '../../src/curator/membership-fact.ts';
import { answerSession } from '../../src/curator/report-session.ts';
import { type Commit, ModelCluster, type Wish } from './model-cluster.ts';
import { ModelNode, type ModelReport } from './model-node.ts';

const runs = Number(process.env['MODEL_RUNS'] ?? 1_000);

type Act =
  | { readonly do: 'change'; readonly wish: Wish; readonly runBy: number }
  | { readonly do: 'look' | 'loseState' | 'dropUnsent' | 'save' | 'setBack' | 'forget'; readonly node: number }
  | { readonly do: 'send'; readonly node: number; readonly limit: number; readonly answer: 'heard' | 'lost' }
  /** Its machine is set back behind a report that the curator has. */
  | { readonly do: 'fork'; readonly node: number; readonly wishes: readonly [Wish, Wish] }
  | { readonly do: 'saveCurator' | 'restoreCurator' };

const node = fc.integer({ min: 0, max: 4 });
const wish = (urls: number) =>
  fc.record({
    kind: fc.constantFrom<Wish['kind']>(
      'addLearner',
      'addLearner',
      'addVoter',
      'promote',
      'promote',
      'remove',
      'updateUrls',
    ),
    pick: fc.nat(20),
    url: fc.nat(urls),
  });

function acts(urls: number): fc.Arbitrary<readonly Act[]> {
  const act: fc.Arbitrary<Act> = fc.oneof(
    { weight: 12, arbitrary: fc.record({ do: fc.constant('change' as const), wish: wish(urls), runBy: node }) },
    { weight: 10, arbitrary: fc.record({ do: fc.constant('look' as const), node }) },
    {
      weight: 10,
      arbitrary: fc.record({
        do: fc.constant('send' as const),
        node,
        limit: fc.integer({ min: 1, max: 8 }),
        answer: fc.constantFrom('heard' as const, 'heard' as const, 'lost' as const),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constantFrom('loseState' as const, 'dropUnsent' as const, 'forget' as const),
        node,
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('save' as const, 'setBack' as const), node }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('fork' as const), node, wishes: fc.tuple(wish(urls), wish(urls)) }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('saveCurator' as const, 'restoreCurator' as const) }) },
  );
  return fc.array(act, { minLength: 5, maxLength: 60, size: 'max' });
}

interface Options {
  readonly founders: number;
  readonly seed: number;
  /** The nodes that look after every change, and lose nothing. */
  readonly attentive: readonly number[];
  /** Their reports come before all others. */
  readonly prompt: boolean;
  readonly tellsOrder: boolean;
}

/** All that a curator has stored. Never changed, so that keeping it is a copy. */
interface Curator {
  readonly records: readonly StreamRecord[];
  readonly history: History;
  readonly facts: readonly MembershipFact[];
}

/** How often each thing came up, so that a model that never gets to the point is noticed. */
const seen = {
  commits: 0,
  inferred: 0,
  late: 0,
  gaps: 0,
  forks: 0,
  newStreams: 0,
  restores: 0,
  selfRemovals: 0,
  confirmed: 0,
};

beforeEach(() => {
  for (const what of Object.keys(seen)) Object.assign(seen, { [what]: 0 });
});

class World {
  readonly cluster: ModelCluster;
  readonly nodes: readonly ModelNode[];
  curator: Curator = { records: [], history: emptyHistory('h', 'c'), facts: [] };
  #curatorCopy = this.curator;
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
    const ids = Array.from({ length: options.founders }, (_, index) => ((options.seed % 991) + 1) * (index + 3) + 7);
    this.cluster = new ModelCluster(ids, (options.seed % 104_729) + 2);
    const founders = this.cluster.commits.map(({ memberId }) => memberId);
    this.nodes = Array.from(
      { length: 5 },
      (_, index) => new ModelNode(`n${index + 1}`, founders[index], options.tellsOrder),
    );
    for (const [index, one] of this.nodes.entries())
      if (index < options.founders || this.#isAttentive(one)) this.#look(one);
  }

  act(step: Act): void {
    switch (step.do) {
      case 'change': {
        const added = this.cluster.make(step.wish);
        const runBy = this.#node(step.runBy);
        // An agent takes up learners alone.
        const mayRun = step.wish.kind === 'addLearner' && runBy.memberId === undefined && !this.#isAttentive(runBy);
        if (added !== undefined && mayRun) runBy.memberId = added;
        this.#afterChange();
        return;
      }
      case 'look':
        this.#look(this.#node(step.node));
        return;
      case 'send':
        this.#send(this.#node(step.node), step.limit, step.answer);
        return;
      case 'fork':
        this.#setBackBehind(this.#node(step.node), step.wishes);
        return;
      case 'saveCurator':
        this.#curatorCopy = this.curator;
        return;
      case 'restoreCurator':
        if (this.curator !== this.#curatorCopy) seen.restores++;
        this.curator = this.#curatorCopy;
        return;
      default:
        this.#fault(step.do, this.#node(step.node));
        return;
    }
  }

  #setBackBehind(one: ModelNode, [first, second]: readonly [Wish, Wish]): void {
    if (this.#isAttentive(one)) return;
    while (one.page(1).length > 0) this.#send(one, 20, 'heard');
    one.save();
    for (const wish of [first, second]) {
      this.cluster.make(wish);
      this.#afterChange();
      this.#look(one);
      if (wish === first) {
        this.#send(one, 20, 'heard');
        one.setBack();
      }
    }
  }

  #fault(fault: 'loseState' | 'dropUnsent' | 'save' | 'setBack' | 'forget', one: ModelNode): void {
    if (this.#isAttentive(one)) return;
    if (fault === 'loseState') one.loseState();
    if (fault === 'dropUnsent') one.dropUnsent();
    if (fault === 'save') one.save();
    if (fault === 'setBack') one.setBack();
    // Its acknowledgements were never saved: all of it comes again.
    if (fault === 'forget') for (const { stream } of one.streams) one.acked(stream, 0);
  }

  #node(index: number): ModelNode {
    const found = this.nodes[index];
    if (found === undefined) throw new Error(`no node ${index}`);
    return found;
  }

  #isAttentive(one: ModelNode): boolean {
    return this.#options.attentive.includes(this.nodes.indexOf(one));
  }

  #afterChange(): void {
    for (const one of this.nodes.filter((candidate) => this.#isAttentive(candidate))) {
      this.#look(one);
      while (this.#options.prompt && one.page(1).length > 0) this.#send(one, 20, 'heard');
    }
  }

  #look(one: ModelNode): void {
    one.look(this.cluster.members);
  }

  #send(one: ModelNode, limit: number, answer: 'heard' | 'lost'): void {
    if (this.nodes.indexOf(one) % 2 === 0 && this.#isForked(one)) {
      one.leaveStream();
      return;
    }
    const page = one.page(limit);
    const [head] = page;
    if (head === undefined) return;
    const stored = this.#recordsOf(one).find(({ stream }) => stream === head.stream) ?? emptyStream(head.stream);
    const verdict = judgeBatch(stored, page, { isToday: head.stream === one.today });
    if (verdict.kind === 'refused') throw new Error(verdict.refusal.message);
    if (verdict.kind === 'missing') {
      one.acked(head.stream, stored.high);
      return;
    }
    for (const { report } of verdict.reports) this.#take(report, verdict.record.besides > 0);
    const others = this.curator.records.filter(({ stream }) => stream !== head.stream);
    this.curator = { ...this.curator, records: [...others, verdict.record] };
    if (verdict.fork !== undefined) seen.forks++;
    if (answer === 'lost') return;
    if (verdict.fork !== undefined) one.leaveStream();
    else one.acked(head.stream, verdict.acknowledgedSeq);
  }

  /** What a node learns that opens a session before it sends. The others learn it from their batch. */
  #isForked(one: ModelNode): boolean {
    const session = answerSession(one.streams, this.#recordsOf(one));
    if (session.kind === 'forked') return true;
    const own = one.idOf(session.stream, session.acknowledgedSeq);
    return own !== undefined && own !== session.acknowledgedId && session.stream === one.today;
  }

  #recordsOf(one: ModelNode): readonly StreamRecord[] {
    return this.curator.records.filter(({ stream }) => stream.startsWith(`${one.nodeId}s`));
  }

  #take(report: ModelReport, forked: boolean): void {
    const context = { storedAt: '2026-01-02T00:00:00.000Z', operations: [] };
    const { nodeId, memberId, clusterId } = report;
    let { history } = learnOwner(this.curator.history, { nodeId, memberId, clusterId }, context);
    const reading = readFact({ ...report, forked });
    if (reading.kind === 'unreadable') throw new Error(reading.because);
    if (reading.kind === 'fact') {
      const step = takeFact(history, reading.fact, context);
      for (const entry of step.changed) if (history.last >= entry.number && entry.before > 0) seen.late++;
      history = step.history;
      expect(takeFact(history, reading.fact, context).changed).toEqual([]);
      this.curator = { ...this.curator, facts: [...this.curator.facts, reading.fact] };
    } else {
      seen[report.seq === 1 ? 'newStreams' : 'gaps']++;
    }
    this.curator = { ...this.curator, history };
  }

  /** All that waits arrives. */
  finish(): void {
    for (const one of this.nodes) {
      // A new session: a curator that was set back asks for what it has lost.
      for (const { stream } of one.streams) one.acked(stream, 0);
      for (let left = 400; one.page(1).length > 0; left--) {
        if (left === 0) throw new Error('reports that wait for ever');
        this.#send(one, 20, 'heard');
      }
    }
    seen.commits += this.cluster.commits.length;
    const { entries } = this.curator.history;
    seen.inferred += entries.filter(({ certainty }) => certainty === 'inferred').length;
    seen.confirmed += entries.reduce((sum, { confirmed }) => sum + confirmed.length, 0);
    seen.selfRemovals += this.curator.facts.filter(({ what, nodeId }) => what === 'removed' && nodeId !== '').length;
  }

  /** `added 1f`, `urlsChanged 1f U3`: a founder was added, whether or not it said so. */
  get committed(): readonly string[] {
    return this.cluster.commits.map(nameOf);
  }

  get history(): readonly string[] {
    const { history } = this.curator;
    expect(inOrder(history.entries)).toEqual(history.entries);
    expect(history.entries.map(({ number }) => number).sort((a, b) => a - b)).toEqual(
      history.entries.map((_entry, index) => index + 1),
    );
    return history.entries.map(nameOf);
  }

  /** The same where a founder's report of it was lost: then it looks like a voter, and nothing tells its place among the founders. */
  get historyByFounders(): readonly string[] {
    const count = this.#options.founders;
    const names = this.history;
    const founded = this.curator.history.entries.filter(({ transition }) => transition === 'founded');
    if (founded.length === count) return names;
    const block = this.committed.slice(0, count).filter((name) => names.slice(0, count).includes(name));
    return [...block, ...names.slice(count)];
  }
}

function nameOf({ transition, memberId, peerUrls }: Pick<Commit, 'transition' | 'memberId' | 'peerUrls'>): string {
  if (transition === 'urlsChanged') return `${transition} ${memberId} ${peerUrls.join()}`;
  return `${transition === 'founded' ? 'added' : transition} ${memberId}`;
}

const founders = fc.integer({ min: 1, max: 3 });
const seeds = fc.nat(1_000_000);
const differentUrls = 1_000_000;

function run(options: Options, story: readonly Act[]): World {
  const world = new World(options);
  for (const step of story) world.act(step);
  world.finish();
  return world;
}

function summary(what: string): void {
  process.stdout.write(`history model, ${what}: ${runs} stories, ${JSON.stringify(seen)}, lost: 0\n`);
}

test(`R08 R09 K07 I23 I24 one node that saw all is enough: exactly the commits, in order, whatever the others tell and when (${runs} stories)`, () => {
  fc.assert(
    fc.property(founders, seeds, acts(differentUrls), (count, seed, story) => {
      const world = run({ founders: count, seed, attentive: [0], prompt: false, tellsOrder: true }, story);
      expect(world.historyByFounders).toEqual(world.committed);
    }),
    { numRuns: runs },
  );
  const { inferred, ...others } = seen;
  expect(inferred, 'what a node saw stays inferred').toBe(0);
  for (const [what, number] of Object.entries(others)) expect(number, what).toBeGreaterThan(0);
  summary('one saw all');
}, 300_000);

test('R08 if its reports come first, the order of the reports is enough: what agents tell today', () => {
  const story = acts(differentUrls).map((all) => all.filter((act) => act.do !== 'restoreCurator'));
  fc.assert(
    fc.property(founders, seeds, story, (count, seed, steps) => {
      const world = run({ founders: count, seed, attentive: [0], prompt: true, tellsOrder: false }, steps);
      expect(world.historyByFounders).toEqual(world.committed);
      expect(world.curator.history.entries.filter(({ before }) => before > 0)).toEqual([]);
    }),
    { numRuns: runs },
  );
  summary('it came first');
}, 300_000);

test('R08 R04 K07 several that saw all, in whatever order their reports come, also of URLs that go back and forth', () => {
  fc.assert(
    fc.property(founders, seeds, acts(2), (count, seed, story) => {
      const world = run({ founders: count, seed, attentive: [0, 3, 4], prompt: false, tellsOrder: true }, story);
      expect(world.historyByFounders).toEqual(world.committed);
    }),
    { numRuns: runs },
  );
  summary('several saw all');
}, 300_000);

test('I23 I26 where nobody saw all: nothing is invented, nothing told is lost, and no order that a node knows is broken', () => {
  let unproven = 0;
  fc.assert(
    fc.property(founders, seeds, acts(differentUrls), (count, seed, story) => {
      const world = run({ founders: count, seed, attentive: [], prompt: false, tellsOrder: true }, story);
      const { history, committed } = world;
      expect(history.filter((name) => !committed.includes(name))).toEqual([]);
      expect(new Set(history).size).toBe(history.length);
      expect(provenBy(world.curator.facts).filter((name) => !history.includes(name))).toEqual([]);
      unproven += checkOrder(world);
    }),
    { numRuns: runs },
  );
  expect(seen.inferred).toBeGreaterThan(0);
  summary(`nobody saw all (${unproven} of neighbours in an order that is neither proven nor true)`);
}, 300_000);

/** The changes that the facts show, one by one or together. */
function provenBy(facts: readonly MembershipFact[]): readonly string[] {
  const names = new Set<string>();
  const seenAs = { learner: new Set<string>(), voter: new Set<string>() };
  for (const { what, memberId, learner, peerUrls } of facts) {
    names.add(`added ${memberId}`);
    if (what === 'removed' || what === 'promoted') names.add(`${what} ${memberId}`);
    if (what === 'urlsChanged') names.add(`${what} ${memberId} ${peerUrls.join()}`);
    if (what === 'joined' || what === 'promoted' || (learner && what !== 'urlsChanged')) seenAs.learner.add(memberId);
    else if (what !== 'urlsChanged') seenAs.voter.add(memberId);
  }
  for (const memberId of seenAs.voter) if (seenAs.learner.has(memberId)) names.add(`promoted ${memberId}`);
  return [...names];
}

/** What the witnesses say of order is true, and kept. Gives the number of neighbours that stand the other way round, unproven. */
function checkOrder({ curator, committed }: World): number {
  const { entries } = curator.history;
  const index = (at: number) => committed.indexOf(nameOf(entries[at] ?? entries[0] ?? never()));
  let wrong = 0;
  for (const [at, entry] of entries.entries()) {
    if (at > 0 && index(at - 1) > index(at)) wrong++;
    for (const [earlier, other] of entries.slice(0, at).entries()) {
      for (const witness of witnessesOf(entry)) {
        const same = witnessesOf(other).find(({ stream }) => stream === witness.stream);
        if (same === undefined || same.order === 0 || witness.order === 0 || same.order === witness.order) continue;
        expect(same.order < witness.order, `${nameOf(other)} before ${nameOf(entry)}`).toBe(true);
        expect(index(earlier) < index(at), `${nameOf(other)} was committed before ${nameOf(entry)}`).toBe(true);
      }
    }
  }
  return wrong;
}

function never(): never {
  throw new Error('there is no such entry');
}
