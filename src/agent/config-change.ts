/** @pure file: what a reload changes. */

import { AgentError } from '../base/errors.ts';
import type { Config } from './config.ts';

/** A reload would change what cannot change while the agent runs. Nothing was changed. */
export class FixedFieldsError extends AgentError {
  readonly code = 'CONFIG_FIELDS_FIXED';
  constructor(fields: readonly string[]) {
    super(`a running agent cannot change ${fields.join(', ')}`, {
      hint: 'Set it back. Names never change; directories may move only while neither agent nor etcd runs.',
    });
  }
}

/** The fields that differ, as paths (`etcd.peerUrl`), sorted. Lists and `etcd.flags` count as one field each. */
export function changedFields(before: Config, after: Config): readonly string[] {
  return differences(before, after, []).sort();
}

/** A reload would change what is read only when the agent starts. Nothing was changed. */
export class ReadAtStartError extends AgentError {
  readonly code = 'CONFIG_READ_AT_START';
  constructor(fields: readonly string[]) {
    const role = fields.includes('role.file') ? ' Then: `etcd-node-agent role switch-source FILE`.' : '';
    const moved = fields.some((field) => ownAddresses.has(field));
    super(`${fields.join(', ')} is read only when the agent starts`, {
      hint: moved
        ? 'Run `etcd-node-agent stop`, restart the agent, run `start`: etcd serves at the new address from its next start on, and the agent looks for it there alone.'
        : `Restart the agent; etcd runs on meanwhile.${role}`,
    });
  }
}

/** Throws FixedFieldsError or ReadAtStartError if one of `fields` cannot change while the agent runs. */
export function refuseFixedFields(fields: readonly string[]): void {
  const fixed = fields.filter((field) => fixedFields.has(field));
  if (fixed.length > 0) throw new FixedFieldsError(fixed);
  const once = fields.filter((field) => readAtStart.has(field));
  if (once.length > 0) throw new ReadAtStartError(once);
}

/** True if one of `fields` is an argument of etcd: it takes effect with the next ordered restart, and the agent does none by itself. */
export function needsEtcdRestart(fields: readonly string[]): boolean {
  return fields.some((field) => /^(?:etcd|tls)\./.test(field) && !takenUpAtOnce.has(field));
}

/** Who this node is, and where its records are. */
const fixedFields: ReadonlySet<string> = new Set([
  'node.id',
  'cluster.name',
  'etcd.name',
  'dataRoot',
  'stateDir',
  'runDir',
]);

/** What parts are built from: addresses, trust, limits. */
const readAtStart: ReadonlySet<string> = new Set([
  'mustBeMount',
  'etcd.peerUrl',
  'etcd.clientUrl',
  'etcd.metricsUrl',
  'etcd.user',
  'etcd.oomScoreAdjust',
  'tls.client',
  'tls.peer',
  'role.file',
  'upstream',
  'metrics.listen',
  'outbox.maxBytes',
  'outbox.maxFacts',
  'outbox.keepDays',
  'timing.reportFirstMs',
  'timing.reportMaxMs',
  'timing.probeIntervalMs',
]);

/** Where the agent looks for its own etcd. */
const ownAddresses: ReadonlySet<string> = new Set(['etcd.clientUrl', 'etcd.metricsUrl']);

/** Of etcd and TLS, what concerns the agent alone. */
const takenUpAtOnce: ReadonlySet<string> = new Set(['etcd.stopGraceMs']);

function differences(before: unknown, after: unknown, path: readonly string[]): string[] {
  if (isSection(before) && isSection(after) && !whole.has(path.join('.'))) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...keys].flatMap((key) => differences(before[key], after[key], [...path, key]));
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [path.join('.')];
}

/** Mappings that are one value: their keys are the operator's, or they are there as a whole or not at all. */
const whole: ReadonlySet<string> = new Set([
  'etcd.flags',
  'etcd.binaries',
  'tls.peer',
  'tls.server',
  'tls.client',
  'upstream',
]);

function isSection(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
