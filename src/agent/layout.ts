/** @pure file: where everything of one node lies. All paths are absolute. */

/** The files and directories of a node. */
export interface Layout {
  readonly stateDir: string;
  readonly dataRoot: string;
  /** `<data-root>/<cluster>/<member>`: everything that must share a file system with the data. */
  readonly memberDir: string;
  /** etcd's own `--data-dir`. */
  readonly dataDir: string;
  /** The identity file that a founding puts into the new data directory. */
  readonly foundingMark: string;
  /** The identity file that a join puts into the new data directory. */
  readonly joinMark: string;
  readonly archiveDir: string;
  /** Lock, lives and logs of the child. */
  readonly childDir: string;
  readonly lockFile: string;
  /** Second copies of what must be readable when the state directory is not. */
  readonly identityCopy: string;
  readonly runIntentCopy: string;
  /** The plain command line of the last start, for an operator without an agent. */
  readonly commandLine: string;
  readonly volumeMarker: string;
  readonly outboxDir: string;
  readonly outboxWitness: string;
  /** Its second copy: a backup of the state directory does not bring it back. */
  readonly outboxWitnessTwin: string;
}

/** @pure The layout of member `memberName` of the cluster that is called `clusterName` on this node. */
export function layoutOf(options: {
  readonly stateDir: string;
  readonly dataRoot: string;
  readonly clusterName: string;
  readonly memberName: string;
}): Layout {
  const memberDir = `${options.dataRoot}/${options.clusterName}/${options.memberName}`;
  return {
    stateDir: options.stateDir,
    dataRoot: options.dataRoot,
    memberDir,
    dataDir: `${memberDir}/data`,
    foundingMark: `${memberDir}/data/etcd-node-agent.founding`,
    joinMark: `${memberDir}/data/etcd-node-agent.join`,
    archiveDir: `${memberDir}/archive`,
    childDir: `${memberDir}/etcd`,
    lockFile: `${memberDir}/lock`,
    identityCopy: `${memberDir}/identity`,
    runIntentCopy: `${memberDir}/run-intent`,
    commandLine: `${memberDir}/command-line`,
    volumeMarker: `${options.dataRoot}/.etcd-node-agent-volume`,
    outboxDir: `${options.stateDir}/outbox`,
    outboxWitness: `${options.stateDir}/outbox-witness`,
    outboxWitnessTwin: `${memberDir}/outbox-witness`,
  };
}
