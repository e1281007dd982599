/** @pure file: changes a role document, and keeps what a person wrote around it. */

import { isMap, isSeq, parseDocument } from 'yaml';
import type { DesiredRole } from './role.ts';

type Risk = DesiredRole['accept'][number];

/** What a command wants a role document to say. */
export interface RoleChange {
  readonly role: DesiredRole['role'];
  readonly grantId: string;
  /** Undefined: as they are. */
  readonly endpoints: readonly string[] | undefined;
  /** Accepted besides; the same risks for another member list give way. */
  readonly accept: readonly Risk[];
}

/** @pure What was accepted for the member of the grant before: a new grant makes another member, for which none of it counts. */
export function spentRisks(base: DesiredRole, { grantId }: Pick<RoleChange, 'grantId'>): readonly Risk[] {
  return grantId === base.grantId ? [] : base.accept;
}

/** @pure Whether a document that says `base` would say anything else after the change. */
export function changesRole(base: DesiredRole, { role, grantId, endpoints, accept }: RoleChange): boolean {
  if (role !== base.role || grantId !== base.grantId) return true;
  if (endpoints !== undefined && JSON.stringify(endpoints) !== JSON.stringify(base.endpoints)) return true;
  return accept.some(
    (wanted) => !base.accept.some((risk) => isSameRisk(risk, wanted) && risk.listHash === wanted.listHash),
  );
}

/**
 * @pure The text of a role document that says `base`, changed. Its generation goes up by one, if it has one. A text without a
 * document (empty, or comments alone) gets one that says all of `base`. Comments and the order of fields stay, and JSON stays JSON.
 */
export function editRole(text: string, base: DesiredRole, change: RoleChange): string {
  const json = jsonObject(text);
  if (json !== undefined) {
    for (const [field, value] of changedFields(base, change, 'generation' in json)) json[field] = value;
    return `${JSON.stringify(json, null, /\n([ \t]+)/.exec(text)?.[1] ?? 2)}\n`;
  }
  const document = parseDocument(text);
  const isNew = !isMap(document.contents);
  const fields = changedFields(base, change, document.has('generation'));
  const all = isNew
    ? [...Object.entries(base).filter(([field, value]) => !isDefault(field, value)), ...fields]
    : fields;
  for (const [field, value] of all) {
    const before: unknown = document.get(field);
    if (field === 'accept' && isSeq(before) && spentRisks(base, change).length === 0) {
      // Item by item, so that the comments of the others stay.
      before.items = before.items.filter((item) => !(isMap(item) && isOneOf(change.accept, item.toJSON() as Risk)));
      for (const risk of change.accept) before.add(document.createNode(risk));
    } else document.set(field, isList(value) ? document.createNode(value) : value);
  }
  return document.toString({ lineWidth: 0 });
}

type Field = readonly [name: string, value: unknown];

function changedFields(base: DesiredRole, change: RoleChange, hasGeneration: boolean): readonly Field[] {
  const { role, grantId, endpoints, accept } = change;
  const counts = hasGeneration || base.generation > 0 || base.epoch > 0;
  const spent = spentRisks(base, change);
  const kept = base.accept.filter((risk) => !spent.includes(risk) && !isOneOf(accept, risk));
  return [
    ['role', role],
    ['grantId', grantId],
    ...(endpoints === undefined ? [] : [['endpoints', endpoints] as const]),
    ...(accept.length === 0 && spent.length === 0 ? [] : [['accept', [...kept, ...accept]] as const]),
    ...(counts ? [['generation', base.generation + 1] as const] : []),
  ];
}

function isOneOf(risks: readonly Risk[], risk: Risk): boolean {
  return risks.some((one) => isSameRisk(one, risk));
}

function isSameRisk(one: Risk, other: Risk): boolean {
  return one.kind === other.kind && one.memberId === other.memberId;
}

/** What the schema puts in the place of a field that is left out. */
function isDefault(field: string, value: unknown): boolean {
  return (
    value === undefined ||
    (field === 'epoch' && value === 0) ||
    (field === 'generation' && value === 0) ||
    (isList(value) && value.length === 0)
  );
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

function jsonObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !isList(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
