/** What the demo has seen and measured. Durations in ms, rounded. */
export interface Summary {
  /** True if every promise was kept. */
  readonly ok: boolean;
  /** The promises that were broken, one sentence each. */
  readonly broken: readonly string[];
  readonly etcdVersion: string;

  /** The node whose member was removed while it led. */
  readonly removedNode: string;
  /** How its etcd ended. */
  readonly etcdExit: { readonly code: number | null; readonly signal: string | null };
  /** True if the IsLocalMemberLearner panic stands in the log of its last life. */
  readonly panicSeen: boolean;
  /** What its agent says of this end. */
  readonly verdict: string;
  /** Status calls that were answered before the removal. */
  readonly statusCalls: number;
  /** From the accepted MemberRemove call to the end of the etcd process. */
  readonly removalToExitMs: number;
  /** From the same call to the verdict, as the agent's API gives it. */
  readonly removalToVerdictMs: number;
  /** From the same call to the report of the removal in the hands of the receiver. */
  readonly removalToReportMs: number;
  /** Pid and start time of all agents are what they were at the start. */
  readonly agentPidUnchanged: boolean;
  /** How often etcd was started on the removed node since, counted on disk at the end of the demo. */
  readonly startsAfterRemoval: number;
  /** Where its data lies now; empty if it was not archived. */
  readonly archivedTo: string;
  /** Reports of the removal from the removed node itself, duplicates removed. */
  readonly removalReports: number;
  /** The longest time without an acknowledged write in the removal, seen by a client of the other two members. */
  readonly longestWriteGapMs: number;

  /** The node whose etcd was killed. */
  readonly crashedNode: string;
  readonly crashVerdict: string;
  /** How long its agent decided to wait before the restart, as it reported it. */
  readonly crashRestartDelayMs: number;
  /** From kill(2) to the first linearizable read that the restarted member answered. */
  readonly crashToServingMs: number;
  /** The same client in the crash: two members are left by then, so that there is no quorum until the crashed one is back. */
  readonly crashWriteGapMs: number;

  readonly writesAcknowledged: number;
  readonly writesLost: number;
  /** Facts in the outboxes of all nodes. */
  readonly reportsSent: number;
  /** How many of them the receiver has. */
  readonly reportsReceived: number;
  readonly reportsLost: number;
  /** Reports that came again and were dropped by the receiver. */
  readonly reportsDuplicate: number;
  readonly durationMs: number;
  /** Where it runs on, with --keep. */
  readonly keptIn: string | null;
}

/** What was seen, before it is judged. */
export type Seen = Omit<Summary, 'ok' | 'broken'> & { readonly reportForks: number };

/** Holds what was seen against what the product promises. */
export function judged({ reportForks, ...seen }: Seen): Summary {
  const promises: readonly (readonly [boolean, string])[] = [
    [seen.agentPidUnchanged, 'an agent is not the process that it was at the start'],
    [seen.verdict === 'removed', `the verdict on ${seen.removedNode} is "${seen.verdict}" instead of "removed"`],
    [seen.startsAfterRemoval === 0, `etcd was started ${seen.startsAfterRemoval} times after the removal`],
    [seen.archivedTo !== '', `the data of ${seen.removedNode} is not in an archive`],
    [seen.removalReports === 1, `the removal was reported ${seen.removalReports} times instead of once`],
    [seen.crashVerdict === 'killed', `the verdict on the crash is "${seen.crashVerdict}" instead of "killed"`],
    [seen.crashRestartDelayMs === 0, `a first crash waits ${seen.crashRestartDelayMs} ms for its restart`],
    [seen.reportsLost === 0, `${seen.reportsLost} reports were lost`],
    [reportForks === 0, `${reportForks} reports came under a number that was taken`],
    [seen.writesLost === 0, `${seen.writesLost} acknowledged writes were lost`],
  ];
  const broken = promises.filter(([kept]) => !kept).map(([, sentence]) => sentence);
  return { ok: broken.length === 0, broken, ...seen };
}

/** The summary for people. */
export function summaryText(summary: Summary): string {
  const { code, signal } = summary.etcdExit;
  const end = summary.panicSeen
    ? `code ${code}, of the IsLocalMemberLearner panic`
    : `${signal ?? `code ${code}`}; the panic is a race, and this time etcd won it`;
  const rows: readonly (readonly [string, string])[] = [
    ['etcd', `${summary.etcdVersion}, unpatched`],
    ['end of the removed etcd', end],
    ['verdict of its agent', `${summary.verdict}, ${summary.removalToVerdictMs} ms after the removal`],
    ['agents', summary.agentPidUnchanged ? 'the same processes as at the start' : 'not the same as at the start'],
    ['starts after the removal', String(summary.startsAfterRemoval)],
    ['its data', summary.archivedTo === '' ? 'not archived' : `archived in ${summary.archivedTo}`],
    ['report of the removal', `upstream after ${summary.removalToReportMs} ms, ${times(summary.removalReports)}`],
    ['longest gap in writes', `${summary.longestWriteGapMs} ms, seen by a client of the other two`],
    ['crash to serving', `${summary.crashToServingMs} ms after SIGKILL; the verdict was "${summary.crashVerdict}"`],
    ['gap in writes meanwhile', `${summary.crashWriteGapMs} ms, since one of two members is no quorum`],
    ['writes', `${summary.writesAcknowledged} acknowledged, ${summary.writesLost} lost`],
    ['reports', `${summary.reportsSent} sent, ${summary.reportsReceived} received, ${summary.reportsLost} lost`],
    ['took', `${(summary.durationMs / 1000).toFixed(1)} s`],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`).join('\n');
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
