/** @pure file: is a role document newer than the accepted one? */

import type { DesiredRole } from './role.ts';

/** Where role documents come from: one source at a time, each with an order of its own. */
export interface RoleSourceName {
  readonly kind: 'file' | 'curator';
  /** Path of the file, or identity of the curator's cluster. */
  readonly name: string;
}

/** A role that was accepted once; it stays until a newer one is. */
export interface AcceptedRole {
  readonly source: RoleSourceName;
  readonly role: DesiredRole;
  /** ISO 8601, UTC. */
  readonly at: string;
}

/** Who this node is, as far as it knows. Hex ids. */
export interface RoleIdentity {
  readonly nodeId: string;
  /** Undefined before the node belongs to a cluster. */
  readonly clusterId: string | undefined;
}

export type RoleVerdict =
  | { readonly kind: 'accept' }
  /** Exactly what is accepted already. */
  | { readonly kind: 'same' }
  | { readonly kind: 'refuse'; readonly why: string };

/** @pure Judges a document from the source in use. A refused document changes nothing, not even a part of it. */
export function judgeRole(
  offered: DesiredRole,
  source: RoleSourceName,
  accepted: AcceptedRole | undefined,
  identity: RoleIdentity,
): RoleVerdict {
  const wrong = wrongAddressee(offered, identity) ?? contradiction(offered);
  if (wrong !== undefined) return refuse(wrong);
  if (accepted === undefined) return { kind: 'accept' };
  if (!sameSource(source, accepted.source)) {
    return refuse(
      `it comes from ${describeSource(source)}, and the accepted role from ${describeSource(accepted.source)}; switching the source is a command: ${switchCommand(source)}`,
    );
  }
  if (sameContent(offered, accepted.role)) return { kind: 'same' };
  return judgeOrder(offered, accepted.role, source);
}

/** How far the documents of a source went that was in use before. */
export interface RoleFloor {
  readonly source: RoleSourceName;
  readonly epoch: number;
  readonly generation: number;
}

/**
 * @pure May the source be switched? Without `force` only if nothing would change by it and the new source does not go
 * back behind what it said before. A document for another node is refused even by force.
 */
export function judgeSwitch(
  offered: DesiredRole,
  accepted: AcceptedRole | undefined,
  identity: RoleIdentity,
  options: { readonly floor: RoleFloor | undefined; readonly force: boolean },
): RoleVerdict {
  const wrong = wrongAddressee(offered, identity) ?? contradiction(offered);
  if (wrong !== undefined) return refuse(wrong);
  if (accepted === undefined || options.force) return { kind: 'accept' };
  const { floor } = options;
  if (floor !== undefined && compareOrder(offered, floor) < 0) {
    return refuse(`it is older (${orderOf(offered)}) than what this source said before (${orderOf(floor)})`);
  }
  const changed = effects(offered, accepted.role);
  if (changed.length === 0) return { kind: 'accept' };
  return refuse(`the new source would change ${changed.join(', ')}; switch with --accept if that is wanted`);
}

/** @pure True if both are the same source. */
export function sameSource(one: RoleSourceName, other: RoleSourceName): boolean {
  return one.kind === other.kind && one.name === other.name;
}

/** @pure For messages. */
export function describeSource({ kind, name }: RoleSourceName): string {
  return kind === 'file' ? `the file ${name}` : `the curator ${name}`;
}

/** @pure What helps where the record of the accepted role was lost. */
export function setAnew(source: RoleSourceName): string {
  return `to set the role anew: ${switchCommand(source)} --accept`;
}

/** The command that makes a source the one in use. */
function switchCommand({ kind, name }: RoleSourceName): string {
  return `etcd-node-agent role switch-source ${kind === 'file' ? name : 'FILE'}`;
}

function judgeOrder(offered: DesiredRole, accepted: DesiredRole, source: RoleSourceName): RoleVerdict {
  // A file that a person edits has no generation: a person means what they save.
  const byHand = source.kind === 'file' && offered.generation === 0 && offered.epoch === 0;
  if (byHand && accepted.generation === 0 && accepted.epoch === 0) return { kind: 'accept' };
  const order = compareOrder(offered, accepted);
  const [its, ours] = [orderOf(offered), orderOf(accepted)];
  if (order < 0) return refuse(`it is older (${its}) than the accepted one (${ours})`);
  if (order === 0) return refuse(`it has the same ${its} as the accepted one but says something else`);
  return { kind: 'accept' };
}

function wrongAddressee(offered: DesiredRole, identity: RoleIdentity): string | undefined {
  if (offered.nodeId !== identity.nodeId) return `it is for node ${offered.nodeId}, and this is ${identity.nodeId}`;
  const { clusterId } = offered;
  if (clusterId === undefined || identity.clusterId === undefined) return undefined;
  if (BigInt(`0x${clusterId}`) === BigInt(`0x${identity.clusterId}`)) return undefined;
  return `it is for cluster ${clusterId}, and this node belongs to ${identity.clusterId}`;
}

/** What no reader can obey at once. (A field that stands twice is refused by the parser already.) */
function contradiction(offered: DesiredRole): string | undefined {
  const hashes = new Map<string, string>();
  for (const { kind, memberId, listHash } of offered.accept) {
    const key = `${kind} for member ${memberId}`;
    const other = hashes.get(key);
    if (other !== undefined && other !== listHash) return `it accepts ${key} twice, with different member lists`;
    hashes.set(key, listHash);
  }
  return undefined;
}

/** @pure What of the accepted role would be different, in words: order and addresses to ask are not. */
export function effects(offered: DesiredRole, accepted: DesiredRole): string[] {
  const names = ['role', 'grantId', 'clusterId', 'etcdVersion', 'accept'] as const;
  return names
    .filter((name) => canonical(offered[name]) !== canonical(accepted[name]))
    .map((name) => `${name} (${canonical(accepted[name])} → ${canonical(offered[name])})`);
}

function sameContent(one: DesiredRole, other: DesiredRole): boolean {
  return canonical(one) === canonical(other);
}

/** JSON with sorted keys: the same content is the same text. */
function canonical(value: unknown): string {
  if (value === undefined) return 'unset';
  return JSON.stringify(value, (_key, item: unknown) => {
    if (typeof item !== 'object' || item === null || Array.isArray(item)) return item;
    return Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

interface Order {
  readonly epoch: number;
  readonly generation: number;
}

function compareOrder(one: Order, other: Order): number {
  return one.epoch - other.epoch || one.generation - other.generation;
}

function orderOf({ epoch, generation }: Order): string {
  return `epoch ${epoch}, generation ${generation}`;
}

function refuse(why: string): RoleVerdict {
  return { kind: 'refuse', why };
}
