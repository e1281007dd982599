/** @pure file: the names of the curator's keys in etcd (docs/curator-state.md). */

/** All keys of the curator begin with this. */
export const curatorPrefix = '/etcd-node-agent/v1/curator/';

/** The keys, by what stands in them. */
export const curatorKeys = {
  /** Who leads and who would: read at once. */
  election: `${curatorPrefix}election/`,
  /** Who leads. It hangs on a lease, and its create revision is the fence of every write. */
  leader: `${curatorPrefix}election/leader`,
  /** The order of all roles, first part; it goes up when somebody accepts a membership that was recovered or restored. */
  epoch: `${curatorPrefix}epoch`,
  /** The curator of one node lives, and whether its etcd leads the raft. Hangs on a lease. */
  candidate: (nodeId: string) => `${curatorPrefix}election/candidates/${nodeId}`,
  node: (nodeId: string) => `${curatorPrefix}nodes/${nodeId}`,
  nodes: `${curatorPrefix}nodes/`,
} as const;
