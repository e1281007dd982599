/** @pure file: etcd's own words by which an end is classified. Source: docs/etcd-facts.md, "exit behaviour". */

/** Row 5: the binary does not fit the data or the cluster. */
export const versionTexts: readonly string[] = [
  'invalid downgrade',
  'incompatible with current running cluster',
  'detected disallowed custom content in v2store',
  'cannot downgrade storage',
  'cannot detect storage schema version',
  'cannot create migration plan',
  'changing major storage version is not supported',
  // `version "3.7.0" is not supported`, from the schema check
  '" is not supported',
];

/** Row 7: the machine, not etcd. */
export const hostTexts: readonly string[] = [
  'no space left on device',
  'disk quota exceeded',
  'read-only file system',
  'permission denied',
  'operation not permitted',
  'input/output error',
  'too many open files',
  'structure needs cleaning',
  'stale file handle',
];

/** Row 8: the data cannot be used. */
export const corruptTexts: readonly string[] = [
  'walpb: crc mismatch',
  'snap: crc mismatch',
  // With the blank before them: a file name may end in `.wal:`.
  ' proto: ',
  ' wal: ',
  '[wal] max entry size limit exceeded',
  'unexpected block type',
  'failed to read WAL, cannot be repaired',
  'failed to repair WAL',
  'invalid database',
  'assertion failed: page',
  'assertion failed: Page',
  'unexpected fault address',
  'cannot use none as id',
  'failed to recover v3 backend',
  'failed to recover from snapshot',
  "snapshot file doesn't exist",
  'database file (',
  'found data inconsistency with peers',
  'failed to get snapshot from Raft storage',
  'failed to restore mvcc store',
];

/** Row 9: the arguments do not fit the cluster, which we compute from its members. */
export const bootstrapTexts: readonly string[] = [
  'member count is unequal',
  'no match found for existing member',
  'has already been bootstrapped',
  'could not retrieve cluster information from the given URLs',
  'error validating peerURLs',
  "couldn't find local name",
  'missing from --initial-advertise-peer-urls',
  'missing from the set of initial-advertise-peer-urls',
  'too many learner members in cluster',
  'has duplicate url',
];

/** Row 10: flags, environment, files. */
export const configTexts: readonly string[] = [
  'failed to verify flags',
  'error verifying flags',
  'conflicting environment variable',
  'unrecognized level',
  'unknown level',
  // Values of flags that etcd finds wrong only when it uses them.
  'auth: invalid auth options',
  'unexpected TLS cipher suite',
  'error parsing CompactionRetention',
  'TLS key/cert',
  'failed to set up TLS',
  'registerGateway failed',
  'not a directory',
  'unknown directory type',
  'invalid datadir',
];

/** Row 12: etcd could not get memory or a thread: the machine is short of it, or a limit (address space, tasks) is too low. */
export const memoryTexts: readonly string[] = [
  'cannot allocate memory',
  'out of memory',
  'failed to reserve page summary memory',
  'pthread_create failed',
  'failed to create new OS thread',
];
