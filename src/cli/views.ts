/** @pure file: what the agent answers, for people. */

import type { Answer, EventView, PlanView, StatusView, WhyView } from '../agent/control.ts';
import { printable } from './printable.ts';
import { table } from './table.ts';

/** @pure The node on one screen. */
export function statusText(status: StatusView): string {
  const { nodeId, sentence, supervision, role, paused, plan, alarms, cluster } = status;
  const rows = [
    ['node', `${nodeId}: ${sentence}`],
    ...(supervision.kind === 'full' ? [] : [['supervision', `${supervision.kind}: ${supervision.because}`]]),
    ['role', role.known ? roleText(role) : `unknown: ${role.problem || 'no role document yet'}`],
    ...(role.known && role.problem !== '' ? [['', roleProblemText(role)]] : []),
    ...(paused === null ? [] : [['paused', `until ${paused.until}: ${paused.reason}`]]),
    ...processRows(status.process),
    ...memberRows(status.member),
    ...(cluster === null ? [] : [['cluster', clusterText(cluster)]]),
    ['plan', planLine(plan)],
    ...(plan.hint === '' ? [] : [['', plan.hint]]),
    ...outboxRows(status.outbox),
    ...alarms.map(({ alarm, detail, since }) => ['alarm', `${alarm} since ${since}: ${detail}`]),
    ['agent', `version ${status.agent.version}, pid ${status.agent.pid}, since ${status.agent.startedAt}`],
  ];
  return lines(rows) + (cluster === null ? '' : `\n${membersTable(cluster)}`);
}

/** @pure The next step, or what blocks it. */
export function planText(plan: PlanView): string {
  return lines([['plan', planLine(plan)], ...(plan.hint === '' ? [] : [['hint', plan.hint]])]);
}

/** @pure The plan, what stands against it, and the last refusals, newest first. */
export function whyText({ plan, roleProblem, alarms, refusals }: WhyView): string {
  const head = lines([
    ['plan', planLine(plan)],
    ...(plan.hint === '' ? [] : [['', plan.hint]]),
    ...(roleProblem === '' ? [] : [['role', roleProblem]]),
    ...alarms.map(({ alarm, detail, since }) => ['alarm', `${alarm} since ${since}: ${detail}`]),
  ]);
  if (refusals.length === 0) return `${head}nothing was refused lately\n`;
  const rows = refusals.flatMap(({ at, what, because, hint }) => [
    [at, `${what}: ${because}`],
    ...(hint === '' ? [] : [['', hint]]),
  ]);
  return `${head}\nrefused lately:\n${lines(rows)}`;
}

/** @pure One fact in one line; the same columns whether listed or followed. */
export function eventLine({ seq, at, kind, certainty, state, data }: EventView): string {
  const facts = Object.entries(data).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  const quiet = state === 'acknowledged' || state === 'kept';
  const marks = [certainty === 'observed' ? '' : certainty, quiet ? '' : state].filter(Boolean);
  const mark = marks.length === 0 ? '' : ` [${marks.join(', ')}]`;
  return `${printable(`${String(seq).padStart(5)}  ${at}  ${kind}${mark}  ${facts.join(' ')}`.trimEnd(), 1000)}\n`;
}

/** @pure What a command did. */
export function answerText({ done, dryRun, lines: said }: Answer): string {
  const text = said.map((line) => `${printable(line)}\n`).join('');
  if (dryRun) return `${text}dry run: nothing was done\n`;
  return done || text !== '' ? text || 'done\n' : 'nothing was to be done\n';
}

/** What was accepted last stays in force. */
function roleProblemText({ refused, problem }: StatusView['role']): string {
  return refused
    ? `the newest document was refused: ${problem}`
    : `it stays as it was accepted; its source says nothing now: ${problem}`;
}

function roleText({ role, epoch, generation, grantId, source }: StatusView['role']): string {
  const grant = grantId === '' ? '' : `, grant ${grantId}`;
  return `${role} (epoch ${epoch}, generation ${generation}${grant}) from ${source}`;
}

function processRows(etcd: StatusView['process']): readonly string[][] {
  const facts = [
    etcd.since === null ? '' : `since ${etcd.since}`,
    etcd.pid === null ? '' : `pid ${etcd.pid}`,
    etcd.version === '' ? '' : `version ${etcd.version}`,
    etcd.life === null ? '' : `life ${etcd.life}`,
    etcd.restarts === 0 ? '' : `${etcd.restarts} restarts`,
    etcd.adopted ? 'started by a former agent' : '',
  ].filter((fact) => fact !== '');
  const rows = [['etcd', `${etcd.phase} (wanted: ${etcd.intent}) ${facts.join(', ')}`]];
  const exit = etcd.lastExit;
  if (exit !== null) {
    const how = exit.signal ?? (exit.code === null ? 'no status' : `code ${exit.code}`);
    const when = exit.at === null ? `, noticed at ${exit.noticedAt}` : ` at ${exit.at}`;
    rows.push(['last exit', `${exit.class} (${how}) in life ${exit.life}${when}: ${exit.because}`]);
  }
  if (etcd.pending.length > 0) {
    rows.push(['pending', 'etcd runs with another configuration: `stop`, then `start`, one member after the other']);
    rows.push(...etcd.pending.map((one) => ['', one]));
  }
  if (etcd.nextStart !== null) rows.push(['next start', etcd.nextStart]);
  return rows;
}

function memberRows(member: StatusView['member']): readonly string[][] {
  if (member === null) return [['member', 'none yet']];
  const voter = member.learner === null ? 'learner or voter: unknown' : member.learner ? 'learner' : 'voter';
  const kind = member.removed ? 'was removed' : voter;
  const facts = [
    `${member.memberId} (${member.name}) of cluster ${member.clusterId}`,
    kind,
    member.leader === true ? 'leads' : '',
    member.quorum === false ? 'has no quorum' : '',
    member.raftTerm === null ? '' : `term ${member.raftTerm}`,
    member.raftAppliedIndex === null ? '' : `applied ${member.raftAppliedIndex}`,
    member.dbSizeBytes === null ? '' : `db ${member.dbSizeBytes} bytes`,
  ];
  return [
    ['member', facts.filter((fact) => fact !== '').join(', ')],
    ['urls', `peer ${member.peerUrl}, client ${member.clientUrl}`],
  ];
}

/** What may fail is said of who answers now; where nobody was asked, the last list is all that is known. */
function clusterText(cluster: NonNullable<StatusView['cluster']>): string {
  const { voters, quorum, answering, faultTolerance, asOf } = cluster;
  if (answering === null) return `${voters} voters, quorum ${quorum} (list of ${asOf}; who answers now is not known)`;
  return `${voters} voters, ${answering} answer, quorum ${quorum}, may lose ${faultTolerance} (list of ${asOf})`;
}

function membersTable({ members }: NonNullable<StatusView['cluster']>): string {
  const rows = members.map(({ memberId, name, learner, answers, peerUrls }) => [
    memberId,
    name === '' ? '(unstarted)' : name,
    `${learner ? 'learner' : 'voter'}${answers === false ? ', does not answer' : ''}`,
    peerUrls.join(' '),
  ]);
  return table(rows, ['member', 'name', 'kind', 'peer urls']);
}

function outboxRows({
  upstream,
  waiting,
  acknowledgedSeq,
  lastSeq,
  parked,
  lastError,
}: StatusView['outbox']): readonly string[][] {
  return [
    [
      'outbox',
      upstream
        ? `${waiting} waiting, ${acknowledgedSeq} of ${lastSeq} acknowledged`
        : `${waiting} kept; no upstream is configured (upstream.kind), so nothing is sent`,
    ],
    ...(parked === null ? [] : [['', `${parked.seq} is refused for ever: ${parked.because}; see events skip`]]),
    ...(lastError === '' ? [] : [['', `last attempt: ${lastError}`]]),
  ];
}

function planLine({ kind, what, because }: PlanView): string {
  return `${kind}${what === '' ? '' : ` ${what}`}${because === '' ? '' : `: ${because}`}`;
}

/** A name column of fixed width and free text: long text is not cut as in a table. */
function lines(rows: readonly (readonly string[])[]): string {
  const width = Math.max(...rows.map(([name = '']) => name.length));
  return rows
    .map(([name = '', text = '']) => `${name.padEnd(width)}  ${printable(text)}`.trimEnd())
    .join('\n')
    .concat('\n');
}
