import * as z from 'zod';
import { compareVersions, type EtcdVersion, formatVersion, lineOf, parseVersion } from '../etcd/known-versions.ts';
import type { StartProblem } from './observed.ts';
import type { DurableValue } from './state/durable-value.ts';

/** Which etcd last ran on the data. */
export const usedVersionSchema = z.object({ version: z.string() });

/**
 * What speaks against starting `version` on data that another version has used: an older minor cannot read what a newer one
 * has written, and finds out late. Patch releases of one minor go both ways.
 */
export function versionProblem(
  used: DurableValue<typeof usedVersionSchema>,
  version: EtcdVersion | undefined,
): StartProblem | undefined {
  const reading = used.read();
  const before = reading.kind === 'ok' ? parseVersion(reading.value.version) : undefined;
  if (before === undefined || version === undefined || lineOf(before) === lineOf(version)) return undefined;
  if (compareVersions(version, before) > 0) return undefined;
  return {
    what: `etcd ${formatVersion(version)} is older than ${formatVersion(before)}, which has used this data`,
    hint: `Name a binary of ${lineOf(before) ?? formatVersion(before)} or newer. A downgrade has its own steps; see docs/runbook.md, "a downgrade".`,
  };
}
