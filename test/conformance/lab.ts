import { EtcdCallError } from '../../src/etcd/call.ts';
import type { EtcdClient, EtcdClientOptions } from '../../src/etcd/client.ts';
import type { EtcdKeys } from '../../src/etcd/keys.ts';
import type { Member, MemberId } from '../../src/etcd/member.ts';

/** The calls that are compared. */
export type LabClient = Pick<
  EtcdClient,
  | 'addLearner'
  | 'linearizableRead'
  | 'memberList'
  | 'moveLeader'
  | 'promoteMember'
  | 'removeMember'
  | 'serializableRead'
  | 'status'
  | 'updateMember'
> & { readonly keys: Pick<EtcdKeys, 'create' | 'get' | 'list' | 'put' | 'remove' | 'replace'> };

/** How a process ended, as its parent sees it. */
export interface LabExit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** A place to try etcd in: real processes, or the simulation. Times are ms of its own clock. */
export interface Lab {
  readonly version: string;
  /** Founds a cluster and waits until all serve. `strict`: etcd's own check of changes; default true. */
  found(names: readonly string[], options?: { readonly strict?: boolean }): Promise<void>;
  /** Gives a node its addresses; nothing runs there. */
  prepare(name: string): Promise<void>;
  peerUrl(name: string): string;
  /** Starts etcd on a node. List and state count only without data. */
  start(name: string, list: readonly string[], state: 'new' | 'existing'): void;
  /** Starts etcd again on its data. */
  restart(name: string, flags?: readonly string[]): void;
  serving(name: string): Promise<void>;
  client(name: string, options?: Partial<EtcdClientOptions>): LabClient;
  addVoter(through: string, peerUrl: string, deadlineMs?: number): Promise<MemberId>;
  kill(name: string): Promise<void>;
  terminate(name: string): void;
  exited(name: string): Promise<LabExit>;
  freeze(name: string): void;
  thaw(name: string): void;
  /** The disk of a node on which nothing runs is gone. */
  wipe(name: string): void;
  /** Keeps the disk of a node on which nothing runs, to be put back by {@link Lab.restoreDisk}. */
  keepDisk(name: string): void;
  /** Puts back what was kept last. */
  restoreDisk(name: string): void;
  /** All that etcd wrote to its log on this node. */
  log(name: string): string;
  nowMs(): number;
  rest(ms: number): Promise<void>;
  /** Asks until the answer is neither false nor undefined and nothing is thrown. */
  eventually<T>(ask: () => Promise<T>, withinMs?: number): Promise<Exclude<T, false | undefined>>;
}

/** One question, or a few that belong together. */
export interface ConformanceCase {
  readonly title: string;
  /** So many etcd processes run at most. */
  readonly etcdAtOnce: 1 | 2 | 3;
  /** Three voters, and in the short run as well; the others of that size run in the full one. */
  readonly alsoShort?: true;
  readonly run: (lab: Lab) => Promise<void>;
}

/** etcd's words and gRPC's number of a call that is refused: `9 etcdserver: Peer URLs already exists`. */
export async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof EtcdCallError)) throw error;
    return `${error.grpcCode} ${error.details}`;
  }
  return 'it was not refused';
}

/** How a call ends that ran into its deadline: etcd knows it too, and now and then answers first, in words of its own. */
export const gaveUp =
  /^4 |^1 Call cancelled|^2 context deadline exceeded|^14 etcdserver: (request timed out|no leader)|leader transfer took too long/;

/** The member of this name. */
export async function memberNamed(client: LabClient, name: string): Promise<Member> {
  const { members } = await client.memberList({ linearizable: false });
  const found = members.find((member) => member.name === name);
  if (found === undefined) throw new Error(`no member is called ${name}`);
  return found;
}

/** Who leads, and the others, by the Status of each. */
export async function leaderOf(
  lab: Lab,
  names: readonly string[],
): Promise<{ readonly leader: string; readonly followers: readonly string[] }> {
  return await lab.eventually(async () => {
    for (const name of names) {
      const status = await lab.client(name).status({ deadlineMs: 1_000 });
      if (status.leaderId === undefined || status.leaderId !== status.header.memberId) continue;
      return { leader: name, followers: names.filter((other) => other !== name) };
    }
    return undefined;
  });
}

/** Waits until one member has applied all that the other one knows as committed, and so has all of it on its disk. */
export async function caughtUp(lab: Lab, name: string, ahead: string): Promise<void> {
  await lab.eventually(async () => {
    const [mine, theirs] = await Promise.all([lab.client(name).status(), lab.client(ahead).status()]);
    return mine.raftAppliedIndex >= theirs.raftIndex;
  });
}

/** Each of the two, or an error. */
export function two(names: readonly string[]): readonly [string, string] {
  const [one, other] = names;
  if (one === undefined || other === undefined) throw new Error('two are needed');
  return [one, other];
}

/** True from this version on. */
export function since(lab: Lab, version: string): boolean {
  const numbers = (text: string) => text.split('.').map(Number);
  const [own, other] = [numbers(lab.version), numbers(version)];
  for (let index = 0; index < 3; index++) {
    const difference = (own[index] ?? 0) - (other[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}
