import type { ClusterId, MemberId } from '../../../src/etcd/member.ts';
import type { PeerView } from './bootstrap.ts';
import type { SimulatedEtcd } from './etcd.ts';
import type { LogBook } from './log-book.ts';
import type { SimulatedNode } from './node.ts';
import type { RaftWorld } from './raft.ts';

/** What a simulated process needs of everything around it. */
export interface World extends RaftWorld {
  readonly book: LogBook;
  /** False: nobody reads the logs, so none are written. */
  readonly writesLogs: boolean;
  /** `node call` of answers that get lost on their way, once each. */
  readonly lostAnswers: Set<string>;
  wallMs(): number;
  /** Unique in a run. */
  nextProposal(): number;
  note(who: string, what: string): void;
  /** What `from` gets when it asks a peer URL; undefined: nobody answers it. */
  peerView(from: SimulatedNode | undefined, peerUrl: string): PeerView | undefined;
  /** The process that runs under this id. */
  etcdOf(clusterId: ClusterId, id: MemberId): SimulatedEtcd | undefined;
  /** Whether packets get from one node to another; undefined is a machine besides the nodes, which is never cut off. */
  open(from: SimulatedNode | undefined, to: SimulatedNode | undefined): boolean;
}
