import { lineOf, parseVersion } from '../etcd/known-versions.ts';
import { readOperatorFlags } from '../etcd/operator-flags.ts';
import type { CheckFlags } from './config-rules.ts';

/** The oldest and the newest line: a flag that neither knows is unknown whatever the binary turns out to be. */
const outermost = ['3.4.23', '3.7.3'] as const;

/**
 * What the table of etcd's flags says of `etcd.flags`, for `config check`, `run` and `reload` alike. Where the version is not
 * known yet (only `etcd.binary` is named) only what no version takes is refused; the rest is looked at before each start.
 */
export const checkEtcdFlags: CheckFlags = (flags, version) => {
  const known = parseVersion(version ?? '');
  const versions = known === undefined || lineOf(known) === undefined ? outermost.map(parseVersion) : [known];
  const problems = versions.map((one) => (one === undefined ? [] : readOperatorFlags(flags, one).problems));
  const [first = [], ...others] = problems;
  return first
    .filter(({ flag }) => others.every((found) => found.some((problem) => problem.flag === flag)))
    .map(({ flag, message }) => ({ flag, problem: message }));
};
