/** @pure file: the founders of a cluster, one line each, and what binds them together. */

import { AgentError } from '../base/errors.ts';

/** One founder: `name peerURL nonce`. The nonce is random, made once on its node, and lost with its disk. */
export interface Founder {
  readonly name: string;
  readonly peerUrl: string;
  readonly nonce: string;
}

/** The list of founders cannot be used; nothing was changed. */
export class FoundersRefusedError extends AgentError {
  readonly code = 'FOUNDERS_REFUSED';
}

/** @pure The line that `found prepare` prints. */
export function founderLine(founder: Founder): string {
  return `${founder.name} ${founder.peerUrl} ${founder.nonce}`;
}

/**
 * @pure Reads the founders' lines (blank lines and `#` comments are passed over), sorted by name.
 * Throws {@link FoundersRefusedError} naming the line.
 */
export function parseFounders(lines: readonly string[]): readonly Founder[] {
  const founders: Founder[] = [];
  for (const [index, raw] of lines.entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const match = /^([A-Za-z0-9][-A-Za-z0-9._]{0,62}) (https?:\/\/[^\s,/@=]+:\d{1,5}) ([0-9a-f]{32})$/.exec(line);
    const [, name, peerUrl, nonce] = match ?? [];
    if (name === undefined || peerUrl === undefined || nonce === undefined) {
      throw new FoundersRefusedError(
        `line ${index + 1} of the founders is not "name peerURL nonce": ${JSON.stringify(line.slice(0, 200))}`,
        {
          hint: 'Take the lines as `etcd-node-agent found prepare` printed them on each founder.',
        },
      );
    }
    founders.push({ name, peerUrl, nonce });
  }
  founders.sort((a, b) => (a.name < b.name ? -1 : 1));
  refuseTwins(founders);
  return founders;
}

/**
 * @pure The founder that is this node. Throws {@link FoundersRefusedError} if its own line is missing (this node lost its
 * disk, or the list is another one) or differs from its configuration.
 */
export function ownFounder(founders: readonly Founder[], own: Founder): Founder {
  const line = founders.find((founder) => founder.nonce === own.nonce);
  if (line === undefined) {
    const namesake = founders.some((founder) => founder.name === own.name || founder.peerUrl === own.peerUrl);
    throw new FoundersRefusedError(
      namesake
        ? `the list has ${own.name}, but with another nonce than this node's: the list is old, or this node has lost its state`
        : `this node (${own.name} ${own.peerUrl}) is not among the founders`,
      {
        hint: 'If the cluster was never started, run `found prepare` on every founder again and pass the new lines. If it was, it is never founded twice: see docs/runbook.md, "a member from scratch".',
      },
    );
  }
  if (line.name !== own.name || line.peerUrl !== own.peerUrl) {
    throw new FoundersRefusedError(
      `the founders' list has this node as ${line.name} ${line.peerUrl}, its configuration as ${own.name} ${own.peerUrl}`,
      { hint: 'Make etcd.name and etcd.peerUrl agree with the list, or prepare the founders again.' },
    );
  }
  return line;
}

/** @pure What the cluster token is the hash of: all lines, sorted, so that every founder computes the same. */
export function tokenInput(founders: readonly Founder[]): string {
  return founders.map((founder) => `${founderLine(founder)}\n`).join('');
}

/** @pure etcd's `--initial-cluster`: `n1=http://…,n2=http://…`. */
export function initialCluster(founders: readonly Founder[]): string {
  return founders.map((founder) => `${founder.name}=${founder.peerUrl}`).join(',');
}

function refuseTwins(founders: readonly Founder[]): void {
  if (founders.length === 0)
    throw new FoundersRefusedError('the list of founders is empty', { hint: 'Give one line for each founder.' });
  for (const field of ['name', 'peerUrl', 'nonce'] as const) {
    const seen = new Set<string>();
    for (const founder of founders) {
      if (seen.has(founder[field])) {
        throw new FoundersRefusedError(`two founders have the same ${field}: ${founder[field]}`, {
          hint: 'Each founder has a name, a peer URL and a nonce of its own.',
        });
      }
      seen.add(founder[field]);
    }
  }
}
