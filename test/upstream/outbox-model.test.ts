// Goal: whatever happens to process and disk, no accepted fact is lost in silence and no number means two facts.
// Method: random stories of appends, deliveries, crashes, power losses, refused writes, full disks, bit flips, old copies
// and lost files, against a model that remembers what was accepted and what the receiver got. After each act the model
// asks of every accepted fact: was it delivered, is it still here, or does a gap name it?
import { dirname } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AgentError } from '../../src/base/errors.ts';
import { decodeRecord } from '../../src/base/record.ts';
import { gapDataOf, gapKind, type Missing, type StoredFact } from '../../src/upstream/fact.ts';
import type { DiskStep, MemoryDisk } from '../support/memory-disk.ts';
import { fact, OutboxMachine, paths, twinPath } from './outbox-fixture.ts';

const runs = Number(process.env['MODEL_RUNS'] ?? 2_000);

type Act =
  | { readonly do: 'append'; readonly count: number; readonly important: boolean; readonly size: number }
  | { readonly do: 'deliver'; readonly limit: number; readonly ack: 'all' | 'half' | 'lost' }
  | { readonly do: 'crashIn'; readonly steps: number; readonly kind: 'kill' | 'powerLoss' }
  | { readonly do: 'reboot'; readonly kind: 'kill' | 'powerLoss' }
  | {
      readonly do: 'fault';
      readonly step: DiskStep;
      readonly errno: string;
      readonly skip: number;
      readonly times: number;
    }
  | { readonly do: 'heal' }
  | { readonly do: 'fill'; readonly spare: number }
  | {
      readonly do: 'flip';
      readonly what: 'segment' | 'position' | 'witness';
      readonly at: number;
      readonly restart: boolean;
    }
  | { readonly do: 'saveCopy' }
  | { readonly do: 'restoreCopy'; readonly what: 'outbox' | 'witness' | 'both' }
  | { readonly do: 'wipe'; readonly what: 'outbox' | 'witness' | 'segment'; readonly at: number }
  | { readonly do: 'wait'; readonly days: number }
  | { readonly do: 'replay'; readonly at: number | undefined }
  | { readonly do: 'skip' }
  | { readonly do: 'newStream' };

const crashKind = fc.constantFrom('kill' as const, 'powerLoss' as const);
const at = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true });
const appends = fc.record({
  do: fc.constant('append' as const),
  count: fc.integer({ min: 1, max: 12 }),
  important: fc.boolean(),
  size: fc.constantFrom(1, 1, 40, 900),
});
const deliveries = fc.record({
  do: fc.constant('deliver' as const),
  limit: fc.integer({ min: 1, max: 20 }),
  ack: fc.constantFrom('all' as const, 'half' as const, 'lost' as const),
});
const acts: fc.Arbitrary<Act> = fc.oneof(
  { weight: 12, arbitrary: appends },
  { weight: 6, arbitrary: deliveries },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('crashIn' as const),
      steps: fc.integer({ min: 1, max: 40 }),
      kind: crashKind,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('reboot' as const), kind: crashKind }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('fault' as const),
      step: fc.constantFrom<DiskStep>(
        'read',
        'write',
        'sync',
        'rename',
        'truncate',
        'remove',
        'create',
        'syncDirectory',
      ),
      errno: fc.constantFrom('EIO', 'ENOSPC', 'EROFS'),
      skip: fc.integer({ min: 0, max: 8 }),
      times: fc.integer({ min: 1, max: 6 }),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ do: 'heal' as const }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('fill' as const), spare: fc.integer({ min: 0, max: 3_000 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('flip' as const),
      what: fc.constantFrom('segment' as const, 'position' as const, 'witness' as const),
      at,
      restart: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ do: 'saveCopy' as const }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('restoreCopy' as const),
      what: fc.constantFrom('outbox' as const, 'witness' as const, 'both' as const),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('wipe' as const),
      what: fc.constantFrom('outbox' as const, 'witness' as const, 'segment' as const),
      at,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), days: fc.integer({ min: 1, max: 9 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('replay' as const), at: fc.option(at, { nil: undefined }) }) },
  { weight: 1, arbitrary: fc.constant({ do: 'skip' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'newStream' as const }) },
);

const limits = { facts: 40, segmentBytes: 1_800, keepHead: 4, factBytes: 4_096 };

/** How often each thing came up, so that a model that never gets to the point is noticed. */
const seen = { crashes: 0, refused: 0, newStreams: 0, gaps: 0, dropped: 0, delivered: 0, checks: 0, damage: 0 };

class World {
  readonly machine: OutboxMachine;
  readonly accepted = new Map<string, string>();
  readonly delivered = new Map<string, StoredFact>();
  readonly lastDelivered = new Map<string, number>();
  /** Places that a gap named which the receiver got. */
  readonly named: Missing[] = [];
  #number = 0;
  #copy: { readonly outbox: ReadonlyMap<string, Uint8Array>; readonly witness: Uint8Array | undefined } | undefined;
  #crashKind: 'kill' | 'powerLoss' = 'kill';
  /** Damage to both places at once cannot be told from a fresh start; one at a time, until it is repaired. */
  #mayDamage = true;

  constructor(seed: number) {
    this.machine = new OutboxMachine(seed, limits, { hasTwin: seed % 2 === 0 });
  }

  act(step: Act): void {
    this.attempt(() => this.#act(step));
    if (this.machine.disk.down) this.#comeUp(this.#crashKind);
    this.attempt(() => this.check());
    if (this.machine.disk.down) this.#comeUp(this.#crashKind);
  }

  /** Expected refusals are part of the story; anything else is a failure. */
  attempt(act: () => void): void {
    try {
      act();
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      seen.refused++;
    }
  }

  #act(step: Act): void {
    const { machine } = this;
    const { disk } = machine;
    switch (step.do) {
      case 'append':
        for (let count = 0; count < step.count; count++) this.#append(step.important, step.size);
        return;
      case 'deliver':
        this.deliver(step.limit, step.ack);
        return;
      case 'crashIn':
        this.#crashKind = step.kind;
        disk.crashAtStep(step.steps);
        return;
      case 'reboot':
        this.#comeUp(step.kind);
        return;
      case 'fault':
        disk.fail(step);
        return;
      case 'heal':
        this.heal();
        return;
      case 'fill':
        disk.capacityBytes = disk.files().reduce((sum, file) => sum + file.size, 0) + step.spare;
        return;
      case 'flip':
        this.#flip(step.what, step.at, step.restart);
        return;
      case 'saveCopy':
        this.#copy = { outbox: disk.save(paths.directory), witness: disk.save('/elsewhere').get(paths.witness) };
        return;
      case 'restoreCopy':
        this.#damage(() => {
          if (this.#copy === undefined) return;
          // Without a twin, or with one that could not be written the last time, nobody can notice this.
          if (step.what === 'both' && writesOf(disk, twinPath) !== writesOf(disk, paths.witness)) return;
          if (step.what !== 'witness') disk.restore(paths.directory, this.#copy.outbox);
          if (step.what !== 'outbox' && this.#copy.witness !== undefined) disk.put(paths.witness, this.#copy.witness);
        });
        return;
      case 'wipe':
        this.#damage(() => {
          if (step.what === 'outbox') disk.wipe(paths.directory);
          const path = step.what === 'witness' ? paths.witness : this.#segmentPath(step.at);
          if (step.what !== 'outbox' && path !== undefined) disk.vanish(path);
        });
        return;
      case 'wait':
        machine.clock.advanceSync(step.days * 86_400_000);
        machine.outbox.maintain();
        return;
      case 'replay':
        this.#replay(step.at);
        return;
      case 'skip': {
        const [head] = machine.outbox.page(1);
        if (head !== undefined) machine.outbox.skip(head, 'the story says so');
        return;
      }
      case 'newStream': {
        const opened = machine.outbox.startNewStream('the story says so');
        expect(opened.seq).toBe(1);
        return;
      }
    }
  }

  #append(important: boolean, size: number): void {
    const number = ++this.#number;
    const stored = this.machine.outbox.append(fact(number, { important, data: { number, text: 'x'.repeat(size) } }));
    const key = keyOf(stored);
    expect(this.accepted.has(key), `number ${key} is used twice`).toBe(false);
    expect(this.delivered.has(key), `number ${key} was delivered before it was given out`).toBe(false);
    this.accepted.set(key, stored.id);
  }

  deliver(limit: number, ack: 'all' | 'half' | 'lost'): void {
    const page = this.machine.outbox.page(limit);
    expect(new Set(page.map((one) => one.stream)).size).toBeLessThanOrEqual(1);
    for (const one of page) this.#receive(one);
    const upTo = ack === 'all' ? page.at(-1) : ack === 'half' ? page[page.length >> 1] : undefined;
    if (upTo !== undefined) this.machine.outbox.ack(upTo);
  }

  #receive(one: StoredFact): void {
    const key = keyOf(one);
    const isGap = one.kind === gapKind;
    const last = this.lastDelivered.get(one.stream) ?? 0;
    expect(one.from, `${key} leaves numbers out`).toBeLessThanOrEqual(last + 1);
    this.lastDelivered.set(one.stream, Math.max(last, one.seq));
    if (gapDataOf(one)?.because === 'the outbox was full') seen.dropped++;
    if (isGap) this.named.push(...(gapDataOf(one)?.missing ?? []));
    const before = this.delivered.get(key);
    if (before !== undefined && before.kind !== gapKind && !isGap) expect(before.id, `fork at ${key}`).toBe(one.id);
    const accepted = this.accepted.get(key);
    if (accepted !== undefined && !isGap) expect(one.id, `another id at ${key}`).toBe(accepted);
    if (before === undefined || before.kind === gapKind) this.delivered.set(key, one);
    seen.delivered++;
  }

  #replay(where: number | undefined): void {
    const { outbox } = this.machine;
    const { stream, high } = outbox.stats();
    outbox.replayFrom(where === undefined ? undefined : { stream, seq: 1 + Math.floor(where * high) });
  }

  #segmentPath(where: number): string | undefined {
    const files = this.machine.disk.files().filter((file) => file.path.endsWith('.jsonl'));
    return files[Math.floor(where * files.length)]?.path;
  }

  #flip(what: 'segment' | 'position' | 'witness', where: number, restart: boolean): void {
    const { disk } = this.machine;
    const path =
      what === 'segment'
        ? this.#segmentPath(where)
        : what === 'witness'
          ? paths.witness
          : `${paths.directory}/position`;
    const size = disk.files().find((file) => file.path === path)?.size;
    if (path === undefined || size === undefined) return;
    const flip = () => disk.flipBit(path, Math.floor(((where * 7_919) % 1) * size * 8));
    // The position is no proof of anything; it may be damaged besides.
    if (what === 'position') flip();
    else if (restart) this.#damage(flip);
    else if (this.#mayDamage) {
      this.#mayDamage = false;
      seen.damage++;
      flip();
    }
  }

  /** Damages files while the agent is down. */
  #damage(act: () => void): void {
    if (!this.#mayDamage) return;
    this.#mayDamage = false;
    seen.damage++;
    this.machine.disk.reboot('kill');
    act();
    this.#comeUp('kill');
  }

  #comeUp(kind: 'kill' | 'powerLoss'): void {
    const { disk } = this.machine;
    seen.crashes++;
    disk.reboot(kind);
    for (let tries = 0; ; tries++) {
      if (disk.down) disk.reboot(kind);
      if (tries > 3) this.heal();
      try {
        this.machine.open();
        break;
      } catch (error) {
        if (!(error instanceof AgentError) || tries > 6) throw error;
      }
    }
    if (this.machine.outbox.stats().refusing === undefined) this.#mayDamage = true;
  }

  heal(): void {
    this.machine.disk.heal();
    this.machine.disk.capacityBytes = Number.POSITIVE_INFINITY;
  }

  /** Every accepted fact was delivered, is still here, or is named. */
  check(): void {
    const present = this.machine.outbox.read({ limit: 10_000 });
    expect(present.length).toBeLessThanOrEqual(limits.facts + 8);
    const here = new Map(present.map((one) => [keyOf(one), one]));
    const named = [...this.named, ...present.flatMap((one) => gapDataOf(one)?.missing ?? [])];
    for (const [key, id] of this.accepted) {
      const delivered = this.delivered.get(key);
      if (delivered?.id === id || here.get(key)?.id === id || isNamed(key, named)) continue;
      throw new Error(`${key} was accepted and is lost in silence; here: ${[...here.keys()].join(' ')}`);
    }
    seen.checks++;
  }

  /** After the faults have stopped everything arrives (I35), and what does not arrive is named. */
  finish(): void {
    this.heal();
    this.#comeUp('powerLoss');
    for (let left = 500; this.machine.outbox.page(1).length > 0 && left > 0; left--) this.deliver(25, 'all');
    expect(this.machine.outbox.stats()).toMatchObject({ waiting: 0, refusing: undefined });
    for (const [key, id] of this.accepted) {
      if (this.delivered.get(key)?.id !== id && !isNamed(key, this.named)) throw new Error(`${key} never arrived`);
    }
    seen.newStreams += this.lastDelivered.size - 1;
    seen.gaps += this.named.length;
  }
}

/** How often a copy of the witness was written, or why that cannot be told. */
function writesOf(disk: MemoryDisk, path: string): unknown {
  const reading = decodeRecord(disk.save(dirname(path)).get(path), 1);
  return reading.kind === 'ok' ? Reflect.get(reading.value as object, 'writes') : reading.kind;
}

function keyOf(one: { readonly stream: string; readonly seq: number }): string {
  return `${one.stream}/${one.seq}`;
}

function isNamed(key: string, named: readonly Missing[]): boolean {
  const [stream, text] = key.split('/');
  const seq = Number(text);
  return named.some((range) => range.stream === stream && range.from <= seq && seq <= (range.to ?? seq));
}

test(`A07 R02 R04 R05 R06 R10 R11 R13 A14 A15 A19 A20 A21 nothing accepted is lost in silence, no number means two facts (${runs} stories)`, () => {
  fc.assert(
    fc.property(fc.integer(), fc.array(acts, { minLength: 5, maxLength: 40, size: 'max' }), (seed, story) => {
      const world = new World(seed);
      for (const step of story) world.act(step);
      world.finish();
    }),
    { numRuns: runs },
  );
  for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(0);
  process.stdout.write(`outbox model: ${runs} stories, ${JSON.stringify(seen)}\n`);
}, 400_000);

const harmless = acts.filter((act) =>
  ['append', 'deliver', 'crashIn', 'reboot', 'saveCopy', 'wait', 'skip'].includes(act.do),
);

test('A20 crashes and power losses alone never cost a number, a fact or the stream', () => {
  fc.assert(
    fc.property(fc.integer(), fc.array(harmless, { minLength: 5, maxLength: 30, size: 'max' }), (seed, story) => {
      const world = new World(seed);
      for (const step of story) world.act(step);
      world.finish();
      expect(world.lastDelivered.size).toBeLessThanOrEqual(1);
      for (const [key, id] of world.accepted) {
        if (!isNamed(key, world.named)) expect(world.delivered.get(key)?.id).toBe(id);
      }
    }),
    { numRuns: Math.ceil(runs / 4) },
  );
}, 200_000);
