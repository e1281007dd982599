/** @pure file: the change record, one etcd key that lets one agent at a time change the membership (docs/change-record.md). */

import * as z from 'zod';

/** All keys of this project begin with this. */
export const keyPrefix = '/etcd-node-agent/v1/';

/** The key of the change record. It is created only if absent, and holds one JSON object. */
export const changeRecordKey = `${keyPrefix}change`;

/** What is about to be done. `down`: a voter is stopped, restarted or rebooted and stays in the list. */
export const changeKinds = ['addLearner', 'promote', 'remove', 'updateUrls', 'down'] as const;
export type ChangeKind = (typeof changeKinds)[number];

const hex = z.string().regex(/^[0-9a-f]{1,16}$/);

/** What stands in the record. Unknown fields are allowed, so that a later version may add some. */
export const changeRecordSchema = z.object({
  /** Hex. A record of another cluster came with a copied disk, and is cleared. */
  clusterId: hex,
  /** Random, one for each change. */
  operation: z.string().min(1).max(64),
  kind: z.enum(changeKinds),
  /** The member in hex; for `addLearner` its peer URL. */
  target: z.string().min(1).max(512),
  /** The node that makes the change. */
  by: z.string().min(1).max(253),
  /**
   * `checking`: nothing was sent yet, and nothing will be once somebody else has rewritten the record.
   * `sending`: the call may be on its way until `waitMs` have passed since somebody first saw it.
   * `resolving`: somebody else has taken it over and reads what became of it.
   */
  phase: z.enum(['checking', 'sending', 'resolving']),
  /** How long others wait on their own clock, from first sight, before they take the record over. Unit: ms. */
  waitMs: z.int().min(0).max(600_000),
  /** Wall time of its making (ISO 8601, UTC); for people. */
  at: z.string(),
});
export type ChangeRecord = z.infer<typeof changeRecordSchema>;

/** @pure As it is stored. */
export function encodeChangeRecord(record: ChangeRecord): string {
  return JSON.stringify(record);
}

/** @pure What a stored text says; undefined if it is no change record that this version knows. */
export function decodeChangeRecord(text: string): ChangeRecord | undefined {
  try {
    const parsed = changeRecordSchema.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}
