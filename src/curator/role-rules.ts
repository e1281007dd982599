/** @pure file: which role depends on which. */

import type { AssignedRole } from './records.ts';

/** The role that every cluster has: a member of the consensus cluster. It depends on none. */
export const consensusMember = 'consensus-member';

/** The other roles, each with those that it depends on. Who is not in it does not exist. */
export type RoleRequirements = ReadonlyMap<string, readonly string[]>;

/** A role that would stand without one that it depends on. */
export interface BrokenDependency {
  readonly role: string;
  readonly requires: string;
}

/** @pure What a role depends on; undefined: there is no such role. */
export function requirementsOf(rules: RoleRequirements, role: string): readonly string[] | undefined {
  return role === consensusMember ? [] : rules.get(role);
}

/** @pure Every role that there is, for a message. */
export function knownRoles(rules: RoleRequirements): readonly string[] {
  return [consensusMember, ...[...rules.keys()].filter((role) => role !== consensusMember).sort()];
}

/**
 * @pure What a change would break: a role that comes without what it depends on, or one that stays and depends on a role
 * that goes. What was broken before and is not touched is no concern of this change.
 */
export function brokenDependency(
  rules: RoleRequirements,
  held: ReadonlySet<string>,
  { coming, going }: { readonly coming: readonly string[]; readonly going: readonly string[] },
): BrokenDependency | undefined {
  const after = new Set([...held, ...coming].filter((role) => !going.includes(role)));
  for (const role of [...after].sort()) {
    for (const requires of requirementsOf(rules, role) ?? []) {
      const touched = coming.includes(role) || going.includes(requires);
      if (touched && !after.has(requires)) return { role, requires };
    }
  }
  return undefined;
}

/** @pure The roles with those that others depend on first; backwards it is the order in which they go. */
export function inOrder(rules: RoleRequirements, roles: readonly string[]): readonly string[] {
  return roles.toSorted((a, b) => depth(rules, a, []) - depth(rules, b, []) || (a < b ? -1 : 1));
}

/** How long the chain below a role is. A circle ends it: its roles come together or not at all. */
function depth(rules: RoleRequirements, role: string, above: readonly string[]): number {
  if (above.includes(role)) return 0;
  const below = requirementsOf(rules, role) ?? [];
  return Math.max(0, ...below.map((one) => 1 + depth(rules, one, [...above, role])));
}

/** @pure The entry of a role. */
export function roleNamed(roles: readonly AssignedRole[], name: string): AssignedRole | undefined {
  return roles.find((role) => role.name === name);
}
