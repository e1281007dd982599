/** @pure file: what one agent tells the others of its member, in one small key for each member (docs/change-record.md). */

import * as z from 'zod';
import { keyPrefix } from './change-record.ts';
import { formatId, type MemberId, parseId } from './member.ts';

/** Keys of members begin with this; the member id in hex follows. */
export const memberKeyPrefix = `${keyPrefix}members/`;

/** Not written anew for this long, a key says nothing more. Unit: ms. Source: design, "Agents open no network listener". */
export const memberKeyMaxAgeMs = 180_000;

/** What stands in the key. Unknown fields are allowed. */
export const memberKeySchema = z.object({
  nodeId: z.string(),
  activity: z.enum(['active', 'draining', 'stopping', 'paused']),
  /** Of the poll before last: what the member had applied for certain. Decimal. */
  term: z.string().regex(/^\d{1,20}$/),
  index: z.string().regex(/^\d{1,20}$/),
  agentVersion: z.string(),
  etcdVersion: z.string(),
  /** Wall time of the writing (ISO 8601, UTC); for people. */
  at: z.string(),
});
export type MemberKey = z.infer<typeof memberKeySchema>;

/** @pure The key of one member. */
export function memberKeyOf(id: MemberId): string {
  return `${memberKeyPrefix}${formatId(id)}`;
}

/** @pure The member that a key is about; undefined if it is none of these keys. */
export function memberOfKey(key: string): MemberId | undefined {
  return key.startsWith(memberKeyPrefix) ? parseId(key.slice(memberKeyPrefix.length)) : undefined;
}

/** @pure As it is stored. */
export function encodeMemberKey(key: MemberKey): string {
  return JSON.stringify(key);
}

/** @pure What a stored text says; undefined if this version cannot read it. */
export function decodeMemberKey(text: string): MemberKey | undefined {
  try {
    const parsed = memberKeySchema.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}
