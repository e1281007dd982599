// Goal: nothing that a node accepted is lost on its way to a curator in silence, nothing is stored twice, and it comes to an end.
// Method: the node's real outbox against the intake, with lost answers, crashes, full outboxes, machines and curators that are set back.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { missingIn, openingOf } from '../../src/curator/gap.ts';
import { gapKind, type IncomingReport } from '../../src/curator/incoming-report.ts';
import { emptyStream, judgeBatch, type StreamRecord } from '../../src/curator/intake.ts';
import { answerSession, type NodeStream } from '../../src/curator/report-session.ts';
import type { StoredFact } from '../../src/upstream/fact.ts';
import { fact, OutboxMachine, paths } from '../upstream/outbox-fixture.ts';

const runs = Number(process.env['MODEL_RUNS'] ?? 600);

type Act =
  | { readonly do: 'append'; readonly count: number; readonly important: boolean }
  | { readonly do: 'send'; readonly limit: number; readonly answer: 'heard' | 'lost' }
  | { readonly do: 'reboot'; readonly kind: 'kill' | 'powerLoss' }
  | { readonly do: 'skip' }
  | { readonly do: 'newStream' }
  | { readonly do: 'wait'; readonly days: number }
  | { readonly do: 'saveMachine' }
  | { readonly do: 'restoreMachine' }
  | { readonly do: 'wipeMachine' }
  /** Set back behind reports that the curator has; so many are made after that. */
  | { readonly do: 'fork'; readonly count: number }
  | { readonly do: 'saveCurator' }
  | { readonly do: 'restoreCurator' };

const sends = fc.record({
  do: fc.constant('send' as const),
  limit: fc.integer({ min: 1, max: 20 }),
  answer: fc.constantFrom('heard' as const, 'heard' as const, 'lost' as const),
});
const appends = fc.record({
  do: fc.constant('append' as const),
  count: fc.integer({ min: 1, max: 12 }),
  important: fc.boolean(),
});
const always = <Name extends Act['do']>(name: Name) => fc.constant({ do: name });
const acts: fc.Arbitrary<Act> = fc.oneof(
  { weight: 10, arbitrary: appends },
  { weight: 8, arbitrary: sends },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('reboot' as const),
      kind: fc.constantFrom('kill' as const, 'powerLoss' as const),
    }),
  },
  { weight: 1, arbitrary: always('skip') },
  { weight: 1, arbitrary: always('newStream') },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('wait' as const), days: fc.integer({ min: 1, max: 9 }) }) },
  { weight: 2, arbitrary: always('saveMachine') },
  { weight: 4, arbitrary: always('restoreMachine') },
  { weight: 1, arbitrary: always('wipeMachine') },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('fork' as const), count: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 2, arbitrary: always('saveCurator') },
  { weight: 2, arbitrary: always('restoreCurator') },
);

const setBacks = fc.constantFrom('machine' as const, 'curator' as const);
const stories = fc.array(acts, { minLength: 5, maxLength: 40, size: 'max' });

/** What the curator has stored. Never changed, so that keeping it is a copy. */
interface Curator {
  readonly records: readonly StreamRecord[];
  readonly reports: ReadonlyMap<string, StoredFact>;
}

/** How often each thing came up, so that a model that never gets to the point is noticed. */
const seen = {
  stored: 0,
  duplicates: 0,
  besides: 0,
  forks: 0,
  forkedSessions: 0,
  forkedByNode: 0,
  askedAgain: 0,
  holes: 0,
  gaps: 0,
};

const limits = { facts: 60, segmentBytes: 1_800, keepHead: 20, factBytes: 4_096 };

class World {
  readonly machine: OutboxMachine;
  curator: Curator = { records: [], reports: new Map() };
  /** What the node has accepted, and would have to be able to account for. */
  readonly accepted = new Map<string, StoredFact>();
  #number = 0;
  #machineCopy:
    | { readonly outbox: ReadonlyMap<string, Uint8Array>; readonly elsewhere: ReadonlyMap<string, Uint8Array> }
    | undefined;
  #curatorCopy: Curator = this.curator;
  /** The node opens a session when it begins, and whenever the curator does not take what it sends. */
  #session: { readonly today: string } | undefined;

  /** A node that asks only when its reports are not taken, as it does with a webhook: then the batch shows the fork. */
  readonly #asksLate: boolean;
  #mustAsk = false;
  /** Of a machine that was set back, a gap may stand for numbers that are stored: the curator leaves it out, as it must. */
  readonly #gapsLeftOut: StoredFact[] = [];

  /** The machine and its curator are not both set back in one story: then each may have lost what the other counts on. */
  readonly #setsBack: 'machine' | 'curator';

  constructor(seed: number, asksLate: boolean, setsBack: 'machine' | 'curator') {
    this.machine = new OutboxMachine(seed, limits);
    this.#asksLate = asksLate;
    this.#setsBack = setsBack;
  }

  act(step: Act): void {
    const { machine } = this;
    switch (step.do) {
      case 'append':
        for (let left = step.count; left > 0; left--) {
          const stored = machine.outbox.append(fact(++this.#number, { important: step.important }));
          this.accepted.set(stored.id, stored);
        }
        return;
      case 'send':
        this.send(step.limit, step.answer);
        return;
      case 'reboot':
        machine.reopenAfter(step.kind);
        this.#session = undefined;
        return;
      case 'skip': {
        const [head] = machine.outbox.page(1);
        if (head !== undefined) machine.outbox.skip(head, 'the story says so');
        return;
      }
      case 'newStream':
        machine.outbox.startNewStream('the story says so');
        this.#session = undefined;
        return;
      case 'wait':
        machine.clock.advanceSync(step.days * 86_400_000);
        machine.outbox.maintain();
        return;
      case 'saveMachine':
        this.#machineCopy = { outbox: machine.disk.save(paths.directory), elsewhere: machine.disk.save('/elsewhere') };
        return;
      case 'restoreMachine':
        this.#setBack(() => {
          if (this.#machineCopy === undefined) return;
          machine.disk.restore(paths.directory, this.#machineCopy.outbox);
          machine.disk.restore('/elsewhere', this.#machineCopy.elsewhere);
        });
        return;
      case 'wipeMachine':
        this.#setBack(() => {
          machine.disk.wipe(paths.directory);
          machine.disk.wipe('/elsewhere');
        });
        return;
      case 'fork':
        if (this.#setsBack !== 'machine') return;
        this.send(20, 'heard');
        for (const again of ['saveMachine', 'append', 'send', 'restoreMachine', 'append'] as const) {
          if (again === 'append') this.act({ do: again, count: step.count, important: true });
          else if (again === 'send') this.send(20, 'heard');
          else this.act({ do: again });
        }
        return;
      case 'saveCurator':
        this.#curatorCopy = this.curator;
        return;
      case 'restoreCurator':
        if (this.#setsBack !== 'curator') return;
        this.curator = this.#curatorCopy;
        this.#session = undefined;
        return;
    }
  }

  /** The whole machine as it was. Nobody can account for what was accepted since, unless it is stored. */
  #setBack(act: () => void): void {
    if (this.#setsBack !== 'machine') return;
    this.machine.disk.reboot('kill');
    act();
    this.machine.open();
    this.#session = undefined;
    const here = new Set(this.machine.outbox.read({ limit: 10_000 }).map(({ id }) => id));
    for (const id of this.accepted.keys()) if (!here.has(id)) this.accepted.delete(id);
  }

  /** One turn of a node that speaks to a curator. */
  send(limit: number, answer: 'heard' | 'lost'): void {
    const { outbox } = this.machine;
    if (this.#session === undefined && !this.#openSession(answer)) return;
    const page = outbox.page(limit);
    const [head] = page;
    if (head === undefined) return;
    const stored = this.#recordOf(head.stream);
    const verdict = judgeBatch(stored, page.map(incoming), { isToday: head.stream === this.#session?.today });
    if (verdict.kind === 'refused') throw new Error(verdict.refusal.message);
    if (verdict.kind === 'missing') {
      seen.holes++;
      this.#session = undefined;
      this.#mustAsk = true;
      return;
    }
    this.#store(
      page,
      verdict.reports.map(({ report }) => report.id),
      verdict.record,
    );
    seen.duplicates += verdict.duplicates;
    if (this.#setsBack === 'machine') this.#gapsLeftOut.push(...page.filter(({ kind }) => kind === gapKind));
    seen.besides += verdict.forkedAt.length;
    this.#checkNumbers(head.stream, verdict.acknowledgedSeq);
    if (answer === 'lost') return;
    if (verdict.fork === undefined) {
      outbox.ack({ stream: head.stream, seq: verdict.acknowledgedSeq });
      return;
    }
    seen.forks++;
    outbox.startNewStream(verdict.fork.message);
    this.#session = undefined;
  }

  #openSession(heard: 'heard' | 'lost'): boolean {
    const { outbox } = this.machine;
    if (this.#asksLate && !this.#mustAsk) {
      this.#session = { today: outbox.stats().stream };
      return true;
    }
    const answer = answerSession(this.#streams(), this.curator.records);
    if (heard === 'lost') return false;
    this.#mustAsk = false;
    const today = outbox.stats().stream;
    if (answer.kind === 'forked') {
      seen.forkedSessions++;
      if (outbox.stats().high > 0) outbox.replayFrom({ stream: today, seq: 1 });
      outbox.startNewStream(answer.refusal.message);
      return false;
    }
    this.#session = { today };
    if (answer.stream === '') return true;
    const place = { stream: answer.stream, seq: answer.acknowledgedSeq };
    const facts = outbox.read({ limit: 10_000 });
    const own = facts.find(({ stream, seq }) => stream === place.stream && seq === place.seq);
    if (own !== undefined && own.kind !== gapKind && own.id !== answer.acknowledgedId) {
      // Only the node can tell: the curator knows less of the stream than the node does. Nothing of it counts as acknowledged.
      outbox.replayFrom({ ...place, seq: 1 });
      if (place.stream !== today) return true;
      seen.forkedByNode++;
      outbox.startNewStream('the curator holds another report');
      this.#session = undefined;
      return false;
    }
    if (own?.id === answer.acknowledgedId && outbox.isWaiting(place)) outbox.ack(place);
    const hasMore = facts.some(({ stream, seq }) => stream === place.stream && seq > place.seq);
    if (hasMore && !outbox.isWaiting({ ...place, seq: place.seq + 1 })) {
      seen.askedAgain++;
      outbox.replayFrom({ ...place, seq: place.seq + 1 });
    }
    return true;
  }

  /** The streams that the node still has something of, oldest first. */
  #streams(): readonly NodeStream[] {
    const last = new Map<string, NodeStream>();
    for (const { stream, seq, id } of this.machine.outbox.read({ limit: 10_000 }))
      last.set(stream, { stream, lastSeq: seq, lastId: id });
    const { stream, high } = this.machine.outbox.stats();
    if (high === 0) last.set(stream, { stream, lastSeq: 0, lastId: '' });
    return [...last.values()];
  }

  #recordOf(stream: string): StreamRecord {
    return this.curator.records.find((one) => one.stream === stream) ?? emptyStream(stream);
  }

  #store(page: readonly StoredFact[], ids: readonly string[], record: StreamRecord): void {
    const reports = new Map(this.curator.reports);
    for (const one of page.filter(({ id }) => ids.includes(id))) {
      expect(reports.has(one.id), `${one.id} is stored twice`).toBe(false);
      reports.set(one.id, one);
      seen.stored++;
      if (one.kind === gapKind) seen.gaps++;
    }
    const others = this.curator.records.filter(({ stream }) => stream !== record.stream);
    this.curator = { records: [...others, record], reports };
  }

  /** What is acknowledged is stored, number by number. */
  #checkNumbers(stream: string, upTo: number): void {
    const covered = new Set<number>();
    for (const one of this.curator.reports.values())
      if (one.stream === stream) for (let number = one.from; number <= one.seq; number++) covered.add(number);
    for (let number = 1; number <= upTo; number++)
      expect(covered.has(number), `${stream}/${number} was acknowledged and is not stored`).toBe(true);
  }

  /** After the faults have stopped all arrives, and what does not is named. */
  finish(): void {
    this.machine.reopenAfter('kill');
    this.#session = undefined;
    this.#mustAsk = true;
    for (let left = 300; left > 0; left--) {
      if (this.#session !== undefined && this.machine.outbox.page(1).length === 0) break;
      this.send(20, 'heard');
    }
    expect(this.machine.outbox.stats().waiting, 'reports that wait for ever').toBe(0);
    for (const one of [...this.accepted.values(), ...this.machine.outbox.read({ limit: 10_000 })]) {
      if (one.kind === gapKind || this.curator.reports.has(one.id) || this.#isNamed(one)) continue;
      throw new Error(`${one.stream}/${one.seq} was lost in silence`);
    }
  }

  /** A gap names it, or the start of a later stream shows that it is not here. */
  #isNamed({ stream, seq }: StoredFact): boolean {
    const firsts = [...this.curator.reports.values()].filter(({ from }) => from === 1).map(incoming);
    const openings = firsts.map((first) => openingOf(first, this.curator.records));
    const gaps = [...this.curator.reports.values(), ...this.#gapsLeftOut];
    const named = gaps.flatMap((one) => missingIn(incoming(one)));
    const isNamed = [...named, ...openings.flatMap(({ notHere }) => notHere ?? [])].some(
      (range) => range.stream === stream && range.from <= seq && seq <= (range.to ?? seq),
    );
    const isKept = this.#streams().some((one) => one.stream === stream);
    return isNamed || (!isKept && openings.some(({ unexplained, notHere }) => unexplained || notHere?.from === 1));
  }
}

function incoming({ seq, from, id, kind, data }: StoredFact): IncomingReport {
  return { seq, fromSeq: from, id, kind, data };
}

test(`K07 R02 R04 R05 R06 A14 A15 nothing is lost in silence between outbox and curator, nor stored twice (${runs} stories)`, () => {
  fc.assert(
    fc.property(fc.integer(), fc.boolean(), setBacks, stories, (seed, asksLate, setsBack, story) => {
      const world = new World(seed, asksLate, setsBack);
      for (const step of story) world.act(step);
      world.finish();
    }),
    { numRuns: runs },
  );
  for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(0);
  process.stdout.write(`intake model: ${runs} stories, ${JSON.stringify(seen)}\n`);
}, 200_000);
