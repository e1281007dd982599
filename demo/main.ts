/**
 * The demo behind `npm start`. scripts/demo sets the machine up and runs this file.
 *
 * Ends with 0; 1 if a promise was broken or the demo failed; 2 if the arguments make no sense; 128 and the signal's number
 * if it was interrupted.
 */
import { constants } from 'node:os';
import { resolve } from 'node:path';
import { binaries, type EtcdBinary } from '../lab/etcd-binaries.ts';
import { describeError } from '../src/base/errors.ts';
import { type Arguments, readArguments, UsageError } from './arguments.ts';
import { keptText } from './kept.ts';
import { Screen } from './screen.ts';
import { Stage } from './stage.ts';
import { Story } from './story.ts';
import { judged, type Summary, summaryText } from './summary.ts';
import { sweep } from './sweep.ts';

/** A demo that takes longer has failed: it is meant to end within a minute. Unit: ms. */
const limitMs = 180_000;

/** The person, or the machine, has had enough. */
class Interrupted extends Error {
  readonly exitCode: number;
  constructor(signal: NodeJS.Signals) {
    super(`interrupted by ${signal}`);
    this.exitCode = 128 + constants.signals[signal];
  }
}

process.exit(await main());

async function main(): Promise<number> {
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => interrupted.abort(new Interrupted(signal)));
  }
  // Whatever goes wrong, and wherever: what was started is swept.
  process.on('uncaughtException', (error) => interrupted.abort(error));
  process.on('unhandledRejection', (reason) => interrupted.abort(reason));
  // `npm start | head`: a reader that has gone is no reason to leave processes behind.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', () => interrupted.abort(new Interrupted('SIGPIPE')));
  }
  const late = new Error(`it is not through after ${limitMs / 60_000} minutes`);
  const limit = setTimeout(() => interrupted.abort(late), limitMs);
  let screen = new Screen(process.stderr);
  try {
    const wanted = readArguments(process.argv.slice(2));
    if (wanted.stop !== undefined) return await stopKept(wanted.stop, screen);
    screen = new Screen(wanted.json ? process.stderr : process.stdout);
    return await demo(wanted, screen, interrupted.signal);
  } catch (error) {
    const reason: unknown = interrupted.signal.aborted ? interrupted.signal.reason : error;
    if (reason instanceof Interrupted) return reason.exitCode;
    screen.leaveTable();
    screen.text(`demo: ${describeError(reason)}`);
    return reason instanceof UsageError ? 2 : 1;
  } finally {
    clearTimeout(limit);
  }
}

async function demo(wanted: Arguments, screen: Screen, signal: AbortSignal): Promise<number> {
  const binary = choose(wanted.etcd);
  screen.text(`demo: etcd ${binary.version} from ${binary.directory}, unpatched`);
  const stage = new Stage({ binary, signal, say: (text) => screen.say(text) });
  let keep = false;
  try {
    const seen = await new Story({ stage, screen, signal, etcdVersion: binary.version }).tell();
    keep = wanted.keep;
    const summary = judged({ ...seen, keptIn: keep ? stage.directory : null });
    show(summary, wanted, screen, stage);
    if (keep) stage.letGo();
    return summary.ok ? 0 : 1;
  } catch (error) {
    screen.leaveTable();
    if (!(signal.reason instanceof Interrupted)) screen.text(stage.lastLines());
    throw error;
  } finally {
    if (!keep) await end(stage, screen, signal);
  }
}

async function end(stage: Stage, screen: Screen, signal: AbortSignal): Promise<void> {
  if (signal.reason instanceof Interrupted) screen.text('demo: interrupted; ending all of it');
  await stage.close();
  screen.text('demo: every process has ended, and the directory is gone');
}

function show(summary: Summary, wanted: Arguments, screen: Screen, stage: Stage): void {
  screen.text(summaryText(summary));
  if (summary.ok) screen.say('every promise was kept', 'good');
  for (const sentence of summary.broken) screen.say(`BROKEN: ${sentence}`, 'bad');
  if (wanted.keep) screen.text(keptText(stage));
  if (wanted.json) process.stdout.write(`${JSON.stringify(summary, undefined, 2)}\n`);
}

async function stopKept(directory: string, screen: Screen): Promise<number> {
  await sweep(resolve(directory));
  screen.text(`demo: every process of ${directory} has ended, and the directory is gone`);
  return 0;
}

/** The etcd to run: the newest here, or the newest that is `wanted` or of that line. */
function choose(wanted: string | undefined): EtcdBinary {
  const all = binaries();
  const fitting = all.filter(
    ({ version }) => wanted === undefined || version === wanted || version.startsWith(`${wanted}.`),
  );
  const chosen = fitting.at(-1);
  if (chosen !== undefined) return chosen;
  const here = all.map(({ version }) => version).join(', ');
  throw new UsageError(`there is no etcd ${wanted} here; here are: ${here || 'none'}`);
}
