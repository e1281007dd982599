/** @pure file: versions of etcd, what differs between them, and which are known to be bad. */

/** A version as etcd prints it. */
export interface EtcdVersion {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
  /** `rc.1` of `3.7.0-rc.1`; empty for a release. */
  readonly pre: string;
}

/** A line of versions: one minor, which is what data and clusters are bound to. */
export type EtcdLine = '3.4' | '3.5' | '3.6' | '3.7';

/** @pure Reads `3.5.30`, `v3.5.30`, `3.7.0-rc.1`, `3.6`, or the output of `etcd --version`; undefined if there is no version in it. */
export function parseVersion(text: string): EtcdVersion | undefined {
  const match = /^(?:etcd Version: *)?v?(\d+)\.(\d+)(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+\S*)?\s*$/m.exec(text);
  if (match === null) return undefined;
  const [, major, minor, patch, pre] = match;
  return { major: Number(major), minor: Number(minor), patch: Number(patch ?? 0), pre: pre ?? '' };
}

/** @pure `3.5.30` */
export function formatVersion(version: EtcdVersion): string {
  const release = `${version.major}.${version.minor}.${version.patch}`;
  return version.pre === '' ? release : `${release}-${version.pre}`;
}

/** @pure Negative if `a` is older than `b`. A pre-release is older than its release. */
export function compareVersions(a: EtcdVersion, b: EtcdVersion): number {
  const numbers = a.major - b.major || a.minor - b.minor || a.patch - b.patch;
  if (numbers !== 0 || a.pre === b.pre) return numbers;
  if (a.pre === '' || b.pre === '') return a.pre === '' ? 1 : -1;
  return a.pre < b.pre ? -1 : 1;
}

/** @pure True if `version` is `since` (for example `3.5.19`) or newer. Throws RangeError if `since` is no version. */
export function atLeast(version: EtcdVersion, since: string): boolean {
  const parsed = parseVersion(since);
  if (parsed === undefined) throw new RangeError(`${since} is no version of etcd`);
  return compareVersions(version, parsed) >= 0;
}

/** @pure The line of a version, or undefined if this agent has not been written for it. */
export function lineOf(version: EtcdVersion): EtcdLine | undefined {
  const line = `${version.major}.${version.minor}`;
  return line === '3.4' || line === '3.5' || line === '3.6' || line === '3.7' ? line : undefined;
}

/** What differs between versions, as far as the agent must know. Source: docs/etcd-facts.md. */
export interface Capabilities {
  /** `/livez` and `/readyz` exist. */
  readonly livez: boolean;
  /** `/readyz` asks whether the member is a learner, and logs the IsLocalMemberLearner panic of a removed one (which is recovered). */
  readonly readyzAsksLearner: boolean;
  /** `/health?serializable=true` reads locally; before, it needs a quorum. */
  readonly serializableHealth: boolean;
  /** `linearizable` in MemberList is honoured; before, each list is one member's own view. */
  readonly linearizableMemberList: boolean;
  /** A removed member that is started again may end with 1 (`listener failed`, `server is stopping`) instead of 0. */
  readonly exitsOneWhenRemoved: boolean;
  /** The line `ready to serve client requests` is printed before the line with the address. */
  readonly readyLine: boolean;
  /** `--feature-gates` replaces the experimental switches. */
  readonly featureGates: boolean;
  /** The snapshot RPC works on a learner. */
  readonly learnerSnapshot: boolean;
  /** The downgrade RPC may be used. On 3.5 it exists and must not be. */
  readonly downgrade: boolean;
  /** A majority of connected voters is enough for a change; before, each voter must have been connected for 5 s. */
  readonly majorityHealthRule: boolean;
  /** MemberUpdate on a learner keeps it a learner in the list. */
  readonly learnerUpdateSafe: boolean;
}

/** @pure What `version` can do. */
export function capabilitiesOf(version: EtcdVersion): Capabilities {
  const since = (...versions: readonly string[]) => sinceOneOf(version, versions);
  return {
    livez: since('3.4.29', '3.5.11', '3.6.0'),
    readyzAsksLearner: since('3.5.19', '3.6.0'),
    serializableHealth: since('3.5.0'),
    linearizableMemberList: since('3.5.0'),
    exitsOneWhenRemoved: since('3.5.18', '3.6.0'),
    readyLine: since('3.5.0'),
    featureGates: since('3.6.0'),
    learnerSnapshot: since('3.5.0'),
    downgrade: since('3.6.0'),
    majorityHealthRule: since('3.5.30', '3.6.11'),
    learnerUpdateSafe: since('3.5.31', '3.6.12'),
  };
}

/** @pure True if `version` carries something that came with the named patches: one of its own line, or an older line's successor. */
export function sinceOneOf(version: EtcdVersion, versions: readonly string[]): boolean {
  const parsed = versions.map((text) => ({ text, at: parseVersion(text) }));
  const ofLine = parsed.find(({ at }) => at?.major === version.major && at.minor === version.minor);
  if (ofLine !== undefined) return atLeast(version, ofLine.text);
  return parsed.some(({ text, at }) => at !== undefined && isNewerLine(version, at) && atLeast(version, text));
}

/** What is wrong with a version, and for which act. */
export interface KnownProblem {
  /** `any`: running it at all; `join`: joining a cluster with it; `upgradeTo`: choosing it as the target of an upgrade. */
  readonly concerns: 'any' | 'join' | 'upgradeTo' | 'upgradeFrom';
  readonly severity: 'warn' | 'refuse';
  /** For an operator: what happens and which version is right. */
  readonly problem: string;
}

/** @pure What is known against `version`; empty if nothing is. */
export function knownProblems(version: EtcdVersion): readonly KnownProblem[] {
  const line = lineOf(version);
  if (line === undefined) {
    const problem = `etcd ${formatVersion(version)} is outside of 3.4 to 3.7, for which this agent is written`;
    return [{ concerns: 'any', severity: 'refuse', problem }];
  }
  const found = table.filter(({ from, to }) => atLeast(version, from) && !atLeast(version, to));
  const pre: readonly KnownProblem[] =
    version.pre === '' ? [] : [{ concerns: 'any', severity: 'warn', problem: 'this is a pre-release of etcd' }];
  return [...pre, ...found.map(({ concerns, severity, problem }) => ({ concerns, severity, problem }))];
}

/** `from` is the first bad version, `to` the first good one. Source: docs/etcd-facts.md, "upgrade and downgrade". */
const table: readonly (KnownProblem & { readonly from: string; readonly to: string })[] = [
  {
    from: '3.5.0',
    to: '3.5.3',
    concerns: 'any',
    severity: 'warn',
    problem: 'a member that is killed under load may lose consistency (fixed in 3.5.3)',
  },
  {
    from: '3.5.1',
    to: '3.5.20',
    concerns: 'join',
    severity: 'warn',
    problem:
      'a promotion is not stored where etcd 3.6 looks for it: after an upgrade the voter would be a learner again (fixed in 3.5.20)',
  },
  {
    from: '3.5.1',
    to: '3.5.20',
    concerns: 'upgradeTo',
    severity: 'refuse',
    problem: 'it does not store promotions where etcd 3.6 looks for them; choose 3.5.26 or newer',
  },
  {
    from: '3.5.0',
    to: '3.5.26',
    concerns: 'upgradeFrom',
    severity: 'refuse',
    problem: 'members that were removed may come back in 3.6; each member must run 3.5.26 or newer first',
  },
];

function isNewerLine(version: EtcdVersion, than: EtcdVersion): boolean {
  return version.major > than.major || (version.major === than.major && version.minor > than.minor);
}
