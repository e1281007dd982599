/** How an etcd without data decides what it is: founder, joiner, or nothing. Source: docs/etcd-facts.md, "bootstrap refusals". */
import { founderClusterId, founderMemberId } from '../../../src/etcd/bootstrap-ids.ts';
import { formatId, type Member } from '../../../src/etcd/member.ts';
import type { StartArguments } from './arguments.ts';
import type { Entry } from './machine.ts';
import type { MemberData } from './raft.ts';

/** What a member tells at its peer URL: its local view, without a quorum. */
export interface PeerView {
  readonly clusterId: bigint;
  readonly members: readonly Member[];
}

/** Data to begin with, or the error with which etcd ends. */
export type Bootstrap =
  | { readonly kind: 'data'; readonly data: MemberData; readonly view: readonly Member[] }
  | { readonly kind: 'refused'; readonly error: string };

/** `askPeer` gives what answers at a peer URL. */
export function bootstrap(args: StartArguments, askPeer: (peerUrl: string) => PeerView | undefined): Bootstrap {
  const own = args.initial.filter(({ name }) => name === args.name);
  if (own.length === 0) {
    return refused(`couldn't find local name "${args.name}" in the initial cluster configuration`);
  }
  const missing = own.filter(({ peerUrl }) => !args.peerUrls.includes(peerUrl));
  if (missing.length > 0) {
    const inCluster = own.map(({ name, peerUrl }) => `${name}=${peerUrl}`).join(',');
    return refused(
      `--initial-cluster has ${inCluster} but missing from --initial-advertise-peer-urls=${args.peerUrls}`,
    );
  }
  const others = args.initial.filter(({ name }) => name !== args.name);
  const views = others.flatMap(({ peerUrl }) => askPeer(peerUrl) ?? []);
  return args.state === 'new' ? found(args, views) : join(args, views);
}

function found(args: StartArguments, views: readonly PeerView[]): Bootstrap {
  const founders = foundersOf(args);
  const id = (founder: { peerUrls: readonly string[] }) => founderMemberId(founder.peerUrls, args.token);
  const memberId = id(founders.find(({ name }) => name === args.name) ?? { peerUrls: args.peerUrls });
  const known = views.flatMap((view) => view.members).find((member) => member.id === memberId);
  if (known !== undefined && known.clientUrls.length > 0) {
    return refused(`member ${formatId(memberId)} has already been bootstrapped`);
  }
  const members = founders.map(
    ({ name: _name, peerUrls }): Member => ({
      id: id({ peerUrls }),
      name: '',
      peerUrls,
      clientUrls: [],
      isLearner: false,
    }),
  );
  const log = members
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .map((member): Entry => ({ term: 1, command: { kind: 'addMember', member }, proposal: 0 }));
  const clusterId = founderClusterId(founders, args.token);
  return { kind: 'data', data: { clusterId, memberId, term: 1, commit: log.length, log }, view: [] };
}

/** The token is ignored; cluster id and own id come from whoever answers, matched by peer URLs. */
function join(args: StartArguments, views: readonly PeerView[]): Bootstrap {
  const [view] = views;
  if (view === undefined) {
    return refused(
      'cannot fetch cluster info from peer urls: could not retrieve cluster information from the given URLs',
    );
  }
  const local = foundersOf(args);
  const head = `error validating peerURLs {ClusterID:${formatId(view.clusterId)} Members:[${view.members.map(({ id }) => `&{ID:${formatId(id)}}`).join(' ')}] RemovedMemberIDs:[]}`;
  if (local.length !== view.members.length) return refused(`${head}: member count is unequal`);
  for (const { id, peerUrls } of view.members) {
    if (local.some((founder) => sameUrls(founder.peerUrls, peerUrls))) continue;
    return refused(
      `${head}: PeerURLs: no match found for existing member (${formatId(id)}, [${peerUrls.join(' ')}]), last resolver error (len([${peerUrls.join(' ')}]) != len([]))`,
    );
  }
  const urls = local.find(({ name }) => name === args.name)?.peerUrls ?? args.peerUrls;
  const self = view.members.find(({ peerUrls }) => sameUrls(urls, peerUrls));
  if (self === undefined) return refused(`${head}: PeerURLs: no match found for the local member`);
  const data = { clusterId: view.clusterId, memberId: self.id, term: 0, commit: 0, log: [] };
  return { kind: 'data', data, view: view.members };
}

/** `--force-new-cluster`: what was not committed is dropped, everybody else is removed, and that is committed at once. */
export function forceNewCluster(data: MemberData, members: readonly Member[]): void {
  data.log.length = data.commit;
  for (const { id } of members) {
    if (id !== data.memberId) data.log.push({ term: data.term, command: { kind: 'removeMember', id }, proposal: 0 });
  }
  data.commit = data.log.length;
}

function foundersOf({
  initial,
}: StartArguments): readonly { readonly name: string; readonly peerUrls: readonly string[] }[] {
  const urlsByName = new Map<string, string[]>();
  for (const { name, peerUrl } of initial) {
    const urls = urlsByName.get(name);
    if (urls === undefined) urlsByName.set(name, [peerUrl]);
    else urls.push(peerUrl);
  }
  return [...urlsByName].map(([name, peerUrls]) => ({ name, peerUrls }));
}

function sameUrls(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((url) => other.includes(url));
}

function refused(error: string): Bootstrap {
  return { kind: 'refused', error };
}
