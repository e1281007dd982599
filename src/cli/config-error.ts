import { AgentError } from '../base/errors.ts';

/** One thing that is wrong with the configuration file. */
export interface ConfigProblem {
  readonly file: string;
  /** Line and column count from 1; 0 where the file could not be read at all. */
  readonly line: number;
  readonly column: number;
  /** The field, such as `etcd.listenPeerUrls.0`; empty for the file as a whole. */
  readonly path: string;
  /** What is wrong, what is wanted. */
  readonly message: string;
}

const checkHint = 'docs/configuration.md has every field; check again with: etcd-node-agent config check FILE';

/** The configuration is wrong. It names all that is wrong at once, in the order of the file; nothing was changed. */
export class ConfigError extends AgentError {
  readonly code = 'CONFIG_INVALID';
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[], hint = checkHint) {
    super(problems.map(formatProblem).join('\n'), { hint });
    this.problems = problems;
  }
}

/** `agent.yaml:6:7: etcd.peerUrl: is missing; want …`, as compilers write it. */
export function formatProblem(problem: ConfigProblem): string {
  const place = problem.line === 0 ? problem.file : `${problem.file}:${problem.line}:${problem.column}`;
  return problem.path === '' ? `${place}: ${problem.message}` : `${place}: ${problem.path}: ${problem.message}`;
}
