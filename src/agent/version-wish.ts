/** @pure file: the version of etcd that the role asks for, against the one that is there. */

/**
 * @pure Why the role's wish is not fulfilled, and what fulfils it; undefined if it is, or if it has none. The agent changes no
 * binary by itself. Undefined versions are not known (yet), which is no difference.
 */
export function unfulfilledVersion(versions: {
  readonly wanted: string | undefined;
  /** Of the binary that the configuration names. */
  readonly configured: string | undefined;
  /** Of the etcd that was started last. */
  readonly running: string | undefined;
}): string | undefined {
  const { wanted, configured, running } = versions;
  if (wanted === undefined) return undefined;
  if (configured !== undefined && configured !== wanted) {
    return `the role asks for etcd ${wanted}, and the configured binary is ${configured}; the agent changes no binary by itself: name one of that version in etcd.binary, or by etcd.version`;
  }
  if (running === undefined || running === wanted) return undefined;
  return `the role asks for etcd ${wanted}, the configured binary is that, and ${running} still runs: \`stop\`, then \`start\``;
}
