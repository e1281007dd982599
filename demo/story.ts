import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../lab/eventually.ts';
import { foundTogether, type LabNode, leaderOf } from '../lab/node.ts';
import { isAlive, processesNaming, startTicks } from '../lab/processes.ts';
import { removeMember } from '../lab/remove-member.ts';
import { formatId } from '../src/etcd/member.ts';
import { firstRead } from './first-read.ts';
import { countReports, eventsOf, receivedAt } from './reports.ts';
import type { Screen } from './screen.ts';
import type { Stage } from './stage.ts';
import type { Seen } from './summary.ts';
import { Watch } from './watch.ts';
import { SteadyWriter } from './writer.ts';

/** How often what is measured is looked at. Unit: ms. */
const lookEveryMs = 5;

/** What the story is told with. */
export interface StoryOptions {
  readonly stage: Stage;
  readonly screen: Screen;
  readonly signal: AbortSignal;
  readonly etcdVersion: string;
}

/** What one act has seen. */
type Removal = Pick<
  Seen,
  | 'removedNode'
  | 'etcdExit'
  | 'panicSeen'
  | 'verdict'
  | 'statusCalls'
  | 'removalToExitMs'
  | 'removalToVerdictMs'
  | 'removalToReportMs'
  | 'archivedTo'
  | 'longestWriteGapMs'
>;
type Crash = Pick<
  Seen,
  'crashedNode' | 'crashVerdict' | 'crashRestartDelayMs' | 'crashToServingMs' | 'crashWriteGapMs'
>;

/** The whole story: found, remove the leader, crash another, count. Each figure is measured here, none is the agents' word alone. */
export class Story {
  readonly #options: StoryOptions;
  #watch: Watch | undefined;
  #writer: SteadyWriter | undefined;

  constructor(options: StoryOptions) {
    this.#options = options;
  }

  async tell(): Promise<Seen> {
    const startedMs = performance.now();
    const { stage, screen, etcdVersion } = this.#options;
    try {
      screen.act('Three nodes, each with an agent of its own');
      await stage.open();
      this.#watch = new Watch(stage.nodes, screen);
      await this.#found();
      const agents = stage.nodes.map((node) => ({ node, ticks: startTicks(node.agentPid), pid: node.agentPid }));
      const victim = await leaderOf(stage.nodes, this.#options.signal);
      const others = stage.nodes.filter((node) => node !== victim);
      const livesBefore = newestLife(victim);
      const writer = await this.#write(others);

      screen.act(`The leader's membership is removed while others ask it for its Status`);
      const removal = await this.#remove(victim, others, writer);
      screen.act('A plain crash is another matter');
      const crash = await this.#crash(others, writer);

      screen.act('What came of it');
      await writer.stop();
      const writes = { writesAcknowledged: writer.acknowledged, writesLost: await writer.lost() };
      const reports = await this.#countReports();
      const agentPidUnchanged = agents.every(
        ({ node, pid, ticks }) => node.agentRuns() && node.agentPid === pid && startTicks(pid) === ticks,
      );
      const startsAfterRemoval = newestLife(victim) - livesBefore;
      const durationMs = Math.round(performance.now() - startedMs);
      const seen = { etcdVersion, ...removal, ...crash, ...writes, ...reports };
      const removalReports = await this.#removalReports(victim);
      return { ...seen, agentPidUnchanged, startsAfterRemoval, removalReports, durationMs, keptIn: null };
    } finally {
      await this.#end();
    }
  }

  async #end(): Promise<void> {
    await this.#writer?.stop();
    this.#writer?.close();
    await this.#watch?.stop();
  }

  async #found(): Promise<void> {
    const { stage, screen } = this.#options;
    screen.say('found prepare on each node; found --list with all three lines on each node');
    await foundTogether(stage.nodes);
    await Promise.all(stage.nodes.map((node) => node.ready()));
    await Promise.all(stage.nodes.map((node) => node.knowsEverybody(stage.nodes.length)));
    const pids = await Promise.all(stage.nodes.map(async (node) => `${node.name} has pid ${await node.etcdPid()}`));
    screen.say(`the cluster is founded, and etcd is ready everywhere: ${pids.join(', ')}`, 'good');
  }

  async #write(others: readonly LabNode[]): Promise<SteadyWriter> {
    const { screen, signal } = this.#options;
    const writer = new SteadyWriter(others.map((node) => node.clientUrl));
    this.#writer = writer;
    await eventually(() => writer.acknowledged > 10, { what: 'the first writes', signal });
    screen.say(`a client writes all the time through ${names(others)}`);
    return writer;
  }

  async #remove(victim: LabNode, others: readonly LabNode[], writer: SteadyWriter): Promise<Removal> {
    const { stage, screen, signal } = this.#options;
    const [through = victim] = others;
    const [id, etcdPid] = await Promise.all([victim.memberId(), victim.etcdPid()]);
    const { agentPid } = victim;
    const hammer = stage.hammer(victim.clientUrl);
    try {
      await eventually(() => hammer.answered > 200, { withinMs: 20_000, what: 'answers to Status calls', signal });
      screen.say(
        `${victim.name} leads; ${hammer.callers} callers on ${hammer.connections} connections ask for its Status`,
      );
      screen.say(
        `${through.name} is told to remove member ${formatId(id)}; etcd takes that once its members are connected for 5 s`,
      );
      const ended = this.#endOf(etcdPid);
      ended.catch(() => undefined); // it is awaited below, and may fail before
      writer.takeLongestGap();
      const removedAt = await removeMember(through.clientUrl, id, signal);
      const statusCalls = hammer.answered;
      const [exitAt, verdict] = await Promise.all([ended, this.#verdict(victim, 1)]);
      const archived = await this.#upstream(victim, 'data.archived');
      const reported = await this.#upstream(victim, 'member.removed');
      await eventually(async () => (await victim.status()).plan.what === 'removedByOthers', {
        what: `${victim.name}: it is blocked as removed`,
        signal,
      });
      const panicSeen = /^panic: failed to find local ID in cluster members$/m.test(victim.etcdLog());
      const since = (at: number) => Math.round(at - removedAt);
      const { code, signal: killedBy } = verdict.exit;
      const how = panicSeen ? 'died of the IsLocalMemberLearner panic' : 'left without the panic: it won the race';
      screen.say(
        `removed. etcd of ${victim.name} ${how} (${killedBy ?? `code ${code}`}) after ${since(exitAt)} ms`,
        'bad',
      );
      screen.say(
        `its agent knows why after ${since(verdict.at)} ms: ${verdict.exit.class} (${verdict.exit.because})`,
        'good',
      );
      const agentNow = victim.agentPid === agentPid ? `still pid ${agentPid}` : `another one, pid ${victim.agentPid}`;
      screen.say(`the agent is ${agentNow}, and its report is upstream after ${since(reported.at)} ms`, 'good');
      const path = String(archived.event.data['path'] ?? '');
      screen.say(`the data is archived in ${path}`);
      const before = writer.acknowledged;
      await eventually(() => writer.acknowledged > before + 10, { what: 'writes after the removal', signal });
      const longestWriteGapMs = Math.round(writer.takeLongestGap());
      screen.say(`${names(others)} serve; the longest gap in writes was ${longestWriteGapMs} ms`, 'good');
      return {
        removedNode: victim.name,
        etcdExit: { code, signal: killedBy },
        panicSeen,
        verdict: verdict.exit.class,
        statusCalls,
        removalToExitMs: since(exitAt),
        removalToVerdictMs: since(verdict.at),
        removalToReportMs: since(reported.at),
        archivedTo: existsSync(join(path, 'data', 'member')) && existsSync(join(path, 'reason.json')) ? path : '',
        longestWriteGapMs,
      };
    } finally {
      await hammer.stop();
    }
  }

  async #crash(others: readonly LabNode[], writer: SteadyWriter): Promise<Crash> {
    const { screen, signal } = this.#options;
    const leader = await leaderOf(others, signal);
    const node = others.find((one) => one !== leader) ?? leader;
    const pid = await node.etcdPid();
    if (!processesNaming(node.dataDir).includes(pid)) throw new Error(`pid ${pid} is not the etcd of ${node.name}`);
    const life = newestLife(node);
    screen.say(`SIGKILL for the etcd of ${node.name}, pid ${pid}`);
    writer.takeLongestGap();
    const killedAt = performance.now();
    process.kill(pid, 'SIGKILL');
    await this.#endOf(pid);
    const id = await node.memberId();
    const servingAt = await firstRead(node.clientUrl, id, signal);
    const crashToServingMs = Math.round(servingAt - killedAt);
    const verdict = await this.#verdict(node, life);
    const newPid = (await node.ready()).process.pid;
    const before = writer.acknowledged;
    await eventually(() => writer.acknowledged > before + 10, { what: 'writes after the crash', signal });
    const crashWriteGapMs = Math.round(writer.takeLongestGap());
    const restarting = await this.#upstream(node, 'process.restarting');
    const crashRestartDelayMs = Number(restarting.event.data['delayMs']);
    const when = crashRestartDelayMs === 0 ? 'at once' : `in ${crashRestartDelayMs} ms`;
    screen.say(`its agent says: ${verdict.exit.class} (${verdict.exit.because}); it is to be started ${when}`);
    screen.say(`it serves again after ${crashToServingMs} ms, as pid ${newPid}, on the same data`, 'good');
    return {
      crashedNode: node.name,
      crashVerdict: verdict.exit.class,
      crashRestartDelayMs,
      crashToServingMs,
      crashWriteGapMs,
    };
  }

  /** The moment at which the process is gone. */
  async #endOf(pid: number): Promise<number> {
    const gone = () => !isAlive(pid) && performance.now();
    return await eventually(gone, {
      withinMs: 40_000,
      everyMs: lookEveryMs,
      what: `the end of etcd (pid ${pid})`,
      signal: this.#options.signal,
    });
  }

  /** What the agent says of the end of one life, and when it first said so. */
  async #verdict(node: LabNode, life: number) {
    const ask = async () => {
      const { lastExit } = (await node.status()).process;
      return lastExit !== null && lastExit.life >= life && { exit: lastExit, at: performance.now() };
    };
    const { signal } = this.#options;
    return await eventually(ask, { withinMs: 40_000, everyMs: lookEveryMs, what: `${node.name}: a verdict`, signal });
  }

  /** The first report of one kind that the receiver has of the node, and when it was seen there. */
  async #upstream(node: LabNode, kind: string) {
    const { stage, signal } = this.#options;
    const ask = async () => {
      const [event] = eventsOf((await receivedAt(stage.reportsUrl)).events, node, kind);
      return event !== undefined && { event, at: performance.now() };
    };
    return await eventually(ask, { withinMs: 20_000, what: `${node.name}: ${kind} at the receiver`, signal });
  }

  /** Reports of the removal of `victim` from its own agent. */
  async #removalReports(victim: LabNode): Promise<number> {
    const { events } = await receivedAt(this.#options.stage.reportsUrl);
    return eventsOf(events, victim, 'member.removed').filter((event) => event.data['self'] === true).length;
  }

  /** Waits until the outboxes are empty; what is then missing at the receiver is lost. */
  async #countReports() {
    const { stage, signal } = this.#options;
    const count = () => countReports(stage.nodes, stage.reportsUrl);
    const counted = await eventually(
      async () => {
        const now = await count();
        return now.lost === 0 && now;
      },
      { withinMs: 8_000, everyMs: 100, signal },
    ).catch(count);
    return {
      reportsSent: counted.sent,
      reportsReceived: counted.received,
      reportsLost: counted.lost,
      reportsDuplicate: counted.duplicates,
      reportForks: counted.forks,
    };
  }
}

/** The number of etcd's newest life on this node, by the directories on disk. 0: it never ran. */
function newestLife(node: LabNode): number {
  return Math.max(0, ...readdirSync(node.livesDir).map(Number).filter(Number.isInteger));
}

function names(nodes: readonly LabNode[]): string {
  return nodes.map((node) => node.name).join(' and ');
}
