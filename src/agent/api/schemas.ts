import * as z from 'zod';

/**
 * What each route takes. Unknown fields are refused: an operator who misspells `dryRun` must not get the real thing.
 * Bounds are those of agent/control.ts.
 */
export const bodies = {
  nothing: optionalBody({}),
  dryRun: optionalBody({ dryRun: z.boolean().default(false) }),
  start: optionalBody({ acceptLogRegression: hexId().optional(), dryRun: z.boolean().default(false) }),
  stop: optionalBody({ force: z.boolean().default(false), dryRun: z.boolean().default(false) }),
  pause: z.strictObject({
    /** Unit: ms. Default 4 h, from 1 s to 7 days. */
    forMs: z
      .int()
      .min(1000)
      .max(7 * 86_400_000)
      .default(4 * 3_600_000),
    reason: words(500),
  }),
  found: optionalBody({ dryRun: z.boolean().default(false), alone: z.boolean().default(false) }),
  foundList: z.strictObject({
    lines: z.array(words(1000)).min(1).max(64),
    dryRun: z.boolean().default(false),
  }),
  adopt: optionalBody({ newClusterId: hexId().optional(), dryRun: z.boolean().default(false) }),
  member: z.strictObject({ memberId: hexId() }),
  memberOrder: z.strictObject({
    memberId: hexId(),
    dryRun: z.boolean().default(false),
    acceptZeroTolerance: z.boolean().default(false),
    withoutRecord: z.boolean().default(false),
  }),
  join: z.strictObject({
    endpoints: z
      .array(z.url({ protocol: /^https?$/ }))
      .max(64)
      .default([]),
    clusterId: hexId().optional(),
    dryRun: z.boolean().default(false),
  }),
  leave: optionalBody({
    acceptZeroTolerance: z.boolean().default(false),
    withoutRecord: z.boolean().default(false),
    dryRun: z.boolean().default(false),
  }),
  retire: z.strictObject({ clusterId: hexId(), dryRun: z.boolean().default(false) }),
  skip: z.strictObject({ seq: z.int().min(1), reason: words(500) }),
};

/** What each route takes after the `?`; always text, each name once. */
export const queries = {
  nothing: z.strictObject({}),
  events: z.strictObject({
    after: count(0, Number.MAX_SAFE_INTEGER).optional(),
    limit: count(1, 1000).default(100),
    follow: yesNo(),
  }),
  logs: z.strictObject({
    life: count(1, Number.MAX_SAFE_INTEGER).optional(),
    lines: count(1, 10_000).default(100),
    follow: yesNo(),
  }),
};

/** A POST without a body is one with `{}`. */
function optionalBody<S extends z.core.$ZodLooseShape>(shape: S) {
  return z.preprocess((body) => body ?? {}, z.strictObject(shape));
}

/** A text of a person that goes into reports and logs: one line, not empty. */
function words(most: number) {
  return z
    .string()
    .min(1)
    .max(most)
    .refine((text) => text.trim() !== '' && !/\p{Cc}/u.test(text), 'must be one line of text');
}

function hexId() {
  return z.string().regex(/^[0-9a-f]{1,16}$/, 'must be an id in lower-case hex, such as 8e9e05c52164694d');
}

function count(least: number, most: number) {
  return z
    .string()
    .regex(/^\d{1,16}$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be from ${least} to ${most}`);
}

function yesNo() {
  return z
    .enum(['true', 'false'])
    .default('false')
    .transform((text) => text === 'true');
}
