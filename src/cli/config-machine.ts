import { accessSync, constants, lstatSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Config, TlsFiles } from '../agent/config.ts';
import { layoutOf } from '../agent/layout.ts';
import { errnoOf } from '../base/errors.ts';
import { recordedOtherwise } from './recorded-node.ts';

/** Something that the configuration needs and this machine does not have, or has in a way that would go wrong. */
export interface MachineProblem {
  /** The field that names it. */
  readonly path: string;
  readonly message: string;
}

/**
 * What can only be seen on the machine itself: binaries, TLS files, the lie of the data, and what this node was called so far. Changes nothing. `config check`
 * prints it; before each start of etcd the agent looks again by itself.
 */
export function checkMachine(config: Config): readonly MachineProblem[] {
  return [
    ...binaries(config),
    ...tlsFiles(config),
    ...dataLiesTogether(config),
    ...mountDemanded(config),
    ...recordedOtherwise(config),
  ];
}

function binaries({ etcd }: Config): readonly MachineProblem[] {
  const named = Object.entries(etcd.binaries).map(([version, path]) => ({ field: `etcd.binaries.${version}`, path }));
  const all = named.length > 0 ? named : [{ field: 'etcd.binary', path: etcd.binary }];
  return all.flatMap(({ field, path }) => {
    const why = whyNot(() => {
      if (!statSync(path).isFile()) return 'is no file';
      accessSync(path, constants.X_OK);
      return undefined;
    });
    return why === undefined ? [] : [{ path: field, message: `${path} ${why}; want an executable etcd` }];
  });
}

function tlsFiles({ tls, upstream }: Config): readonly MachineProblem[] {
  const sections: [string, Partial<Record<keyof TlsFiles, string | undefined>>][] = [
    ['tls.peer', tls.peer ?? {}],
    ['tls.server', tls.server ?? {}],
    ['tls.client', tls.client ?? {}],
    ['upstream.tls', (upstream.kind === 'webhook' ? upstream.tls : undefined) ?? {}],
    ['upstream', upstream.kind === 'webhook' && upstream.tokenFile !== undefined ? { key: upstream.tokenFile } : {}],
  ];
  return sections.flatMap(([section, files]) =>
    Object.entries(files).flatMap(([key, path]) => {
      if (path === undefined) return [];
      const field = section === 'upstream' ? 'upstream.tokenFile' : `${section}.${key}`;
      const why = whyNot(() => (statSync(path).isFile() ? undefined : 'is no file')) ?? whyTooOpen(key, path);
      return why === undefined ? [] : [{ path: field, message: `${path} ${why}` }];
    }),
  );
}

/** A private key that others may read is no secret, and one that others may write is not ours. */
function whyTooOpen(key: string, path: string): string | undefined {
  const forbidden = key === 'key' ? 0o007 : 0o002;
  if ((statSync(path).mode & forbidden) === 0) return undefined;
  return key === 'key'
    ? 'is open to every user; want mode 0600 or 0640'
    : 'may be written by every user; want mode 0644';
}

/**
 * Data is archived by one rename from data to archive. A mount point or a link in between would make that rename fail, or
 * move the link and leave the data.
 */
function dataLiesTogether(config: Config): readonly MachineProblem[] {
  const { dataDir, memberDir, archiveDir } = layoutOf({
    stateDir: config.stateDir,
    dataRoot: config.dataRoot,
    clusterName: config.cluster.name,
    memberName: config.etcd.name,
  });
  const between = [dirname(memberDir), memberDir, dataDir, archiveDir, `${dataDir}/member`, `${dataDir}/member/wal`];
  return between.flatMap((path) => {
    const stats = lookAt(path);
    if (stats === undefined) return [];
    const what = `${path} ${path.endsWith('/wal') ? '(the WAL) ' : ''}`;
    if (stats.isSymbolicLink()) return [{ path: 'dataRoot', message: `${what}is a link; want a plain directory` }];
    if (!stats.isDirectory()) return [{ path: 'dataRoot', message: `${what}is no directory` }];
    const parent = lookAt(dirname(path));
    if (parent === undefined || parent.dev === stats.dev) return [];
    return [
      { path: 'dataRoot', message: `${what}is a mount point of its own; want it on the file system of dataRoot` },
    ];
  });
}

function mountDemanded({ mustBeMount, dataRoot }: Config): readonly MachineProblem[] {
  if (!mustBeMount) return [];
  const stats = lookAt(dataRoot);
  const parent = lookAt(dirname(dataRoot));
  if (stats !== undefined && parent !== undefined && stats.dev !== parent.dev) return [];
  return [{ path: 'mustBeMount', message: `${dataRoot} is no mount point` }];
}

function lookAt(path: string): ReturnType<typeof lstatSync> | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    // Not ours to see (EACCES), or a file where a directory should be: the check of its parent says so.
    return undefined;
  }
}

function whyNot(look: () => string | undefined): string | undefined {
  try {
    return look();
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ENOTDIR') return 'does not exist';
    return errno === 'EACCES' ? 'may not be used by this user' : `cannot be looked at (${errno ?? String(error)})`;
  }
}
