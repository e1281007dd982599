/** @pure file: what ails an etcd that runs, in words. */

export interface Health {
  /** False once enough liveness probes were missed in a row. */
  readonly answers: boolean;
  /** Whether a quorum confirms what this member reads; undefined: not known. */
  readonly quorum: boolean | undefined;
  /** Why there is none, in words; empty otherwise. */
  readonly withoutQuorum: string;
  /** Why an etcd that starts was not ready when it was last asked; empty otherwise. */
  readonly notReady: string;
}

/** What an operator is told instead of "converged". */
export interface Ailment {
  readonly because: string;
  readonly hint: string;
}

/** @pure The worst that is known; undefined if nothing ails it. */
export function ailmentOf(health: Health): Ailment | undefined {
  if (!health.answers) {
    return {
      because: 'etcd runs and does not answer',
      hint: 'It is restarted once it does nothing at all while the others make progress. See docs/runbook.md, "an etcd that does not answer".',
    };
  }
  if (health.withoutQuorum !== '') {
    return {
      because: `etcd runs without a quorum: ${health.withoutQuorum}`,
      hint: 'Bring the other members back. If they are gone for good, see docs/runbook.md, "a lost quorum".',
    };
  }
  return undefined;
}
