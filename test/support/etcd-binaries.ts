import { binaries, type EtcdBinary, versionNumbers } from '../../lab/etcd-binaries.ts';

export { binaries, type EtcdBinary, newestBinary, versionNumbers } from '../../lab/etcd-binaries.ts';

/** True in a full run (`npm run test:full`): stories that would make the short one longer than ten minutes run there alone, and are named. */
export const fullRun = process.env['ETCD_TEST_VERSIONS'] === 'all';

const debianLines = ['3.4.23', '3.5.16', '3.5.30'];

/**
 * The versions that a test on real etcd runs on: the newest alone, or all with ETCD_TEST_VERSIONS=all.
 * With CI=true a missing one of Debian's three is an error, unless ETCD_BIN names a single binary.
 */
export function testVersions(): readonly EtcdBinary[] {
  const all = binaries();
  const { CI, ETCD_BIN, ETCD_TEST_VERSIONS } = process.env;
  if (CI === 'true' && ETCD_BIN === undefined) {
    // A suite that moved on carries another patch release of the same line; get-etcd names that. The line must be there.
    const missing = debianLines.filter((wanted) => !all.some((binary) => sameOrMoved(binary.version, wanted)));
    if (missing.length > 0) throw new Error(`etcd ${missing.join(', ')} must be here in CI; run scripts/get-etcd`);
  }
  return ETCD_TEST_VERSIONS === 'all' ? all : all.slice(-1);
}

/**
 * The versions for whole stories with agents, which take minutes each: the newest, and in a full run the oldest besides. What
 * differs between versions (removals, exits, calls, probes, replies) is tested on {@link testVersions}.
 */
export function storyVersions(): readonly EtcdBinary[] {
  const versions = testVersions();
  const [oldest] = versions;
  const newest = versions.at(-1);
  return [oldest, newest].filter(
    (binary, index, both) => binary !== undefined && both.indexOf(binary) === index,
  ) as EtcdBinary[];
}

/** True for the same version or a later patch release of its line. */
function sameOrMoved(version: string, wanted: string): boolean {
  const [major, minor, patch] = versionNumbers(version);
  const [wantedMajor, wantedMinor, wantedPatch] = versionNumbers(wanted);
  return major === wantedMajor && minor === wantedMinor && patch >= wantedPatch;
}
