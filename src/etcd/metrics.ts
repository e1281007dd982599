/** @pure file: the few numbers that we read out of etcd's metrics (Prometheus text). */
import { type MemberId, parseId } from './member.ts';

/** One sample: a name, its labels, a number. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** What a member's metrics say. Undefined: they do not say it. Names are the same from 3.4 to 3.7. */
export interface EtcdMetrics {
  /** Whose metrics these are. */
  readonly memberId: MemberId | undefined;
  /** Version of the binary: `3.5.30`. */
  readonly version: string | undefined;
  readonly hasLeader: boolean | undefined;
  readonly isLeader: boolean | undefined;
  readonly isLearner: boolean | undefined;
  /** Since the start of the process. */
  readonly leaderChangesSeen: number | undefined;
  /** Raft index that is applied here; etcd sets this metric to the index itself. */
  readonly appliedIndex: number | undefined;
  /** Raft index that this member knows to be committed. */
  readonly committedIndex: number | undefined;
  /** The members that this one has a living connection to, by its own view. Undefined: it lists none, which an only member does too. */
  readonly activePeers: ReadonlySet<MemberId> | undefined;
}

/** @pure Reads {@link EtcdMetrics} from the text of `/metrics`. Text that is not of that form gives only undefined. */
export function etcdMetricsOf(text: string): EtcdMetrics {
  const samples = pickSamples(text, new Set(Object.values(names)));
  const value = (name: string) => samples.find((sample) => sample.name === name)?.value;
  const flag = (name: string) => asFlag(value(name));
  return {
    memberId: parseId(labelOfTheOne(samples, names.id, 'server_id') ?? ''),
    version: labelOfTheOne(samples, names.version, 'server_version'),
    hasLeader: flag(names.hasLeader),
    isLeader: flag(names.isLeader),
    isLearner: flag(names.isLearner),
    leaderChangesSeen: value(names.leaderChanges),
    appliedIndex: value(names.applied),
    committedIndex: value(names.committed),
    activePeers: activePeersOf(samples),
  };
}

/**
 * @pure The samples with one of these names, in the order of the text. Lines that do not parse are left out, as are lines
 * longer than 4 KiB; the text itself is bounded by whoever fetched it.
 */
export function pickSamples(text: string, wanted: ReadonlySet<string>): readonly Sample[] {
  const samples: Sample[] = [];
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf('\n', start);
    const end = newline === -1 ? text.length : newline;
    const sample = end - start <= longestLine ? sampleOf(text.slice(start, end), wanted) : undefined;
    if (sample !== undefined) samples.push(sample);
    start = end + 1;
  }
  return samples;
}

const longestLine = 4_096;

const names = {
  id: 'etcd_server_id',
  version: 'etcd_server_version',
  hasLeader: 'etcd_server_has_leader',
  isLeader: 'etcd_server_is_leader',
  isLearner: 'etcd_server_is_learner',
  leaderChanges: 'etcd_server_leader_changes_seen_total',
  applied: 'etcd_server_proposals_applied_total',
  committed: 'etcd_server_proposals_committed_total',
  activePeers: 'etcd_network_active_peers',
} as const;

/** A gauge for each pair of members: 1 while the connection lives. */
function activePeersOf(samples: readonly Sample[]): ReadonlySet<MemberId> | undefined {
  const pairs = samples.filter(({ name }) => name === names.activePeers);
  if (pairs.length === 0) return undefined;
  const active = pairs.filter(({ value }) => value === 1).map(({ labels }) => parseId(labels['Remote'] ?? ''));
  return new Set(active.filter((id) => id !== undefined));
}

function sampleOf(line: string, wanted: ReadonlySet<string>): Sample | undefined {
  const name = /^[a-zA-Z_:][a-zA-Z0-9_:]*/.exec(line)?.[0] ?? '';
  if (!wanted.has(name)) return undefined;
  const rest = /^(?:\{((?:[^"{}]|"(?:[^"\\]|\\.)*")*)\})?[ \t]+(\S+)(?:[ \t]+-?\d+)?[ \t]*\r?$/.exec(
    line.slice(name.length),
  );
  const value = numberOf(rest?.[2] ?? '');
  return rest === null || value === undefined ? undefined : { name, labels: labelsOf(rest[1] ?? ''), value };
}

function labelsOf(text: string): Record<string, string> {
  const pairs = [...text.matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g)];
  return Object.fromEntries(pairs.map(([, label = '', value = '']) => [label, unescaped(value)]));
}

function unescaped(value: string): string {
  return value.replace(/\\(.)/g, (_whole, escaped: string) => (escaped === 'n' ? '\n' : escaped));
}

function numberOf(text: string): number | undefined {
  if (text === '+Inf') return Number.POSITIVE_INFINITY;
  if (text === '-Inf') return Number.NEGATIVE_INFINITY;
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text) ? Number(text) : undefined;
}

function asFlag(value: number | undefined): boolean | undefined {
  return value === 1 ? true : value === 0 ? false : undefined;
}

/** The label of the one sample of that name that is 1. Several would be several servers: then nothing is known. */
function labelOfTheOne(samples: readonly Sample[], name: string, label: string): string | undefined {
  const [only, ...others] = samples.filter((sample) => sample.name === name && sample.value === 1);
  return others.length === 0 ? only?.labels[label] : undefined;
}
