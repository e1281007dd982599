/** @pure file: the role document, and how it is read (docs/role.md). */

import {
  isAlias,
  LineCounter,
  parseDocument,
  visit,
  type YAMLError,
  type YAMLWarning,
  type Node as YamlNode,
} from 'yaml';
import * as z from 'zod';

const hex64 = /^[0-9a-f]{1,16}$/;

const riskSchema = z
  .strictObject({
    kind: z
      .string()
      .regex(/^[a-z][a-z0-9-]{0,63}$/, 'want the kind that the refusal names, such as zero-tolerance')
      .describe('Which refusal is overridden, as the refusal itself names it, for example zero-tolerance.'),
    memberId: z
      .string()
      .regex(hex64, 'want a member id in hex, as etcdctl shows it')
      .describe('The member it is about. Hex.'),
    listHash: z
      .string()
      .regex(/^[0-9a-f]{8,64}$/, 'want the hash that the refusal names')
      .describe('Hash of the member list that the refusal names; with another list the acceptance is void.'),
  })
  .describe('A risk that somebody accepted, for one member and one member list.');

/** The shape of a role document. Unknown fields are refused by name. */
export const roleSchema = z
  .strictObject({
    nodeId: z.string().min(1, 'want the id of this node').max(253).describe('The node that this role is for.'),
    clusterId: z
      .string()
      .regex(hex64, 'want a cluster id in hex, as etcdctl shows it')
      .optional()
      .describe('The cluster it is for, in hex. Left out by a person who does not know it yet.'),
    role: z
      .enum(['consensus-member', 'leaving', 'none'])
      .describe(
        'consensus-member: be a member. leaving: leave and report. none: be no member (a member leaves first).',
      ),
    grantId: z
      .string()
      .min(1, 'want a value that changes when the role is granted anew')
      .max(128)
      .describe('Changes only when the role is granted anew. A removed node joins again only with a new one.'),
    epoch: z.int().min(0).max(Number.MAX_SAFE_INTEGER).default(0).describe('Order, first part. Default 0.'),
    generation: z
      .int()
      .min(0)
      .max(Number.MAX_SAFE_INTEGER)
      .default(0)
      .describe(
        'Order, second part. Left out or 0 in a file that is edited by hand: then every change counts as newer.',
      ),
    endpoints: z
      .array(z.url({ protocol: /^https?$/, error: 'want a client URL such as https://10.0.0.1:2379' }))
      .max(64)
      .default([])
      .describe('Client URLs of voters to ask when this node knows no member yet.'),
    etcdVersion: z
      .string()
      .regex(/^\d+\.\d+\.\d+$/, 'want a version such as 3.5.30')
      .optional()
      .describe(
        'The version of etcd that should run. The agent changes no binary by itself: it raises the alarm etcdVersionDiffers.',
      ),
    accept: z.array(riskSchema).max(16).default([]).describe('Risks that are accepted.'),
  })
  .describe('The role that a node should have (docs/role.md).');

/** What this node should be. */
export type DesiredRole = Readonly<z.infer<typeof roleSchema>>;

/** What a text turned out to be. An empty one is no role at all, which is never read as `none`. */
export type RoleReading =
  | { readonly kind: 'role'; readonly role: DesiredRole }
  | { readonly kind: 'empty' }
  /** One line for each mistake, as `FILE:LINE:COLUMN: what is wrong`. */
  | { readonly kind: 'invalid'; readonly problems: readonly string[] };

/** A role document may not be larger. Unit: bytes. */
export const maxRoleBytes = 64 * 1024;

/** @pure Reads a role document in YAML or JSON (which YAML includes). `file` is named in the problems. */
export function parseRole(text: string, file: string): RoleReading {
  if (text.length > maxRoleBytes) return invalid([`${file}:1:1: want at most ${maxRoleBytes} bytes`]);
  if (text.includes('\0')) return invalid([`${file}:1:1: want text, found NUL bytes`]);
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, strict: true, uniqueKeys: true, merge: false });
  const place = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${Math.max(1, line)}:${Math.max(1, col)}`;
  };
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0) return invalid(faults.map((fault) => `${place(fault.pos[0])}: ${yamlFault(fault, text)}`));
  if (document.contents === null || isEmptyScalar(document.toJS())) return { kind: 'empty' };
  const alias = firstAlias(document);
  if (alias !== undefined) return invalid([`${place(alias)}: want plain values, found a YAML alias`]);
  const result = roleSchema.safeParse(document.toJS());
  if (result.success) return { kind: 'role', role: result.data };
  const problems = result.error.issues.flatMap((issue) => {
    if (issue.code !== 'unrecognized_keys') {
      return [`${place(offsetOf(document, issue.path))}: ${label(issue.path)}${wording(issue, document)}`];
    }
    return issue.keys.map((key) => {
      const path = [...issue.path, key];
      const known = Object.keys(roleSchema.shape).join(', ');
      const want = issue.path.length === 0 ? `; known are: ${known}` : '; known are: kind, memberId, listHash';
      return `${place(offsetOf(document, path))}: ${path.join('.')} is no field of a role document${want}`;
    });
  });
  return invalid(problems);
}

/** @pure The JSON schema (draft 2020-12) of the role document, for editors and for other languages. */
export function roleJsonSchema(): unknown {
  return z.toJSONSchema(roleSchema, { io: 'input' });
}

function invalid(problems: readonly string[]): RoleReading {
  return { kind: 'invalid', problems };
}

function yamlFault(fault: YAMLError | YAMLWarning, text: string): string {
  if (fault.code === 'DUPLICATE_KEY') {
    return `${/^[^\s:]*/.exec(text.slice(fault.pos[0]))?.[0] ?? 'a field'} stands twice; want each field once`;
  }
  if (fault.code === 'MULTIPLE_DOCS') return 'want one document, found a second one';
  return fault.message.split('\n')[0]?.replace(/ at line .*$/, '') ?? '';
}

/** What is wanted, in words for the person who wrote the file. */
function wording(issue: z.core.$ZodIssue, document: YamlDocument): string {
  if (issue.code === 'invalid_value') return `want one of ${issue.values.join(', ')}`;
  if (issue.code !== 'invalid_type') return issue.message;
  const found: unknown = issue.path.length === 0 ? document.toJS() : document.getIn(issue.path);
  const wanted = wantedTypes[issue.expected] ?? issue.expected;
  if (found === undefined) return `is missing; want ${wanted}`;
  if (issue.expected === 'string' && (typeof found === 'number' || typeof found === 'boolean')) {
    return `want ${wanted}, found a ${typeof found}; put it in quotes`;
  }
  return `want ${wanted}`;
}

const wantedTypes: Readonly<Record<string, string>> = {
  string: 'a text',
  int: 'a whole number',
  number: 'a whole number',
  array: 'a list',
  object: 'fields with their values',
};

function isEmptyScalar(value: unknown): boolean {
  return value === null || value === undefined || value === '';
}

type YamlDocument = ReturnType<typeof parseDocument>;

function firstAlias(document: YamlDocument): number | undefined {
  let found: number | undefined;
  visit(document, (_key, node) => {
    if (!isAlias(node)) return undefined;
    found = node.range?.[0] ?? 0;
    return visit.BREAK;
  });
  return found;
}

/** Where a field stands; where it is missing, the place of what should hold it. */
function offsetOf(document: YamlDocument, path: readonly PropertyKey[]): number {
  for (let length = path.length; length >= 0; length--) {
    const node = length === 0 ? document.contents : document.getIn(path.slice(0, length), true);
    if (isNode(node)) return node.range?.[0] ?? 0;
  }
  return 0;
}

function isNode(value: unknown): value is YamlNode {
  return typeof value === 'object' && value !== null && 'range' in value;
}

function label(path: readonly PropertyKey[]): string {
  return path.length === 0 ? '' : `${path.map(String).join('.')}: `;
}
