import { formatId, type Member, type MemberList, parseId, votersOf } from '../etcd/member.ts';
import type { Config } from './config.ts';
import { flagDrift } from './flag-drift.ts';
import type { Layout } from './layout.ts';
import type { DataSeen } from './observed.ts';
import { OrderRefusedError } from './order-refused.ts';
import type { ClusterPort } from './ports.ts';
import type { Holder, StartOrders } from './start-order.ts';
import type { AgentState } from './state/agent-state.ts';
import type { IdentityRecord } from './state/schemas.ts';

export interface AdoptionOptions {
  readonly config: () => Config;
  readonly cluster: ClusterPort;
  readonly state: AgentState;
  readonly layout: Layout;
  readonly orders: Pick<StartOrders, 'order' | 'preflight' | 'holder'>;
  /** Voters that the role document names, for an adoption that knows nobody yet. */
  readonly roleEndpoints: () => readonly string[];
  readonly grantId: () => string;
}

/** What an adoption would record, and what an operator should know before. */
export interface AdoptionPlan {
  readonly identity: IdentityRecord;
  readonly lines: readonly string[];
}

/** How long others have to answer. Unit: ms. */
const askMs = 2_000;

type OwnData = DataSeen & { readonly kind: 'member' };

/**
 * Data of an etcd that was run otherwise becomes this node's: the ids of its log, the live lists and the flags are compared.
 * Only plans; nothing is written here.
 */
export class Adoption {
  readonly #options: AdoptionOptions;

  constructor(options: AdoptionOptions) {
    this.#options = options;
  }

  /** Throws {@link OrderRefusedError} if the data is nobody's, another's, or of a member that was removed. */
  async plan(data: DataSeen, newClusterId: string | undefined): Promise<AdoptionPlan> {
    const own = this.#refuseOtherData(data);
    const before = this.#options.state.knownIdentity();
    this.#refuseOtherIdentity(own, before, newClusterId);
    this.#refuseRemoved(own);
    this.#refuseOtherFounding(own);
    const lists = await this.#liveLists(own, before);
    const list = this.#listThatHas(own, lists);
    const members = list?.members ?? [this.#asOnlyMember(own.memberId)];
    const identity = this.#identityFrom(own, members);
    return { identity, lines: [...this.#membershipLines(own, lists, list), ...this.#startLines(identity), closing] };
  }

  #refuseOtherData(data: DataSeen): OwnData {
    if (data.kind === 'member') return data;
    const because = 'because' in data ? `${data.kind}: ${data.because}` : data.kind;
    throw new OrderRefusedError(`there is no member's data in ${this.#options.layout.dataDir} (${because})`, {
      hint: 'Put the data directory there: it must contain member/wal and member/snap.',
    });
  }

  #refuseOtherIdentity(own: OwnData, before: IdentityRecord | undefined, newClusterId: string | undefined): void {
    if (newClusterId !== undefined && parseId(newClusterId) !== own.clusterId) {
      throw new OrderRefusedError(`the data directory holds ${namesOf(own)}, not cluster ${newClusterId}`, {
        hint: '`adopt --dry-run` shows what is there.',
      });
    }
    if (before === undefined || (before.clusterId === own.clusterId && before.memberId === own.memberId)) return;
    if (newClusterId !== undefined) return;
    throw new OrderRefusedError(
      `this node is recorded as ${namesOf(before)}, and the data directory holds ${namesOf(own)}`,
      {
        hint: `If a restore, a forced new cluster or a new member on this node is why: \`adopt --new-cluster-id ${formatId(own.clusterId)}\`.`,
      },
    );
  }

  #refuseRemoved(own: OwnData): void {
    const stones = this.#options.state.tombstones.read();
    const stone =
      stones.kind === 'ok' &&
      stones.value.find((one) => one.memberId === own.memberId && one.clusterId === own.clusterId);
    if (!stone) return;
    throw new OrderRefusedError(`${namesOf(own)} was removed from its cluster (${stone.evidence.join('; ')})`, {
      hint: 'Its id never starts again. Move the data away; see docs/runbook.md, "a member from scratch".',
    });
  }

  /** A founding that has begun would be reported as over, with the ids of another cluster. */
  #refuseOtherFounding(own: OwnData): void {
    const founding = this.#options.state.founding.read();
    if (founding.kind !== 'ok' || founding.value.state !== 'started') return;
    if (founding.value.clusterId === own.clusterId && founding.value.memberId === own.memberId) return;
    throw new OrderRefusedError('a founding has begun on this node, and the data directory is not its own', {
      hint: 'See docs/runbook.md, "founding was refused".',
    });
  }

  /**
   * The lists of all who answer: those that the role names, the voters that were known, an etcd that still runs on this
   * data, and everybody whom these name. Throws {@link OrderRefusedError} if one of them is of another cluster.
   */
  async #liveLists(own: OwnData, before: IdentityRecord | undefined): Promise<readonly MemberList[]> {
    const { config, roleEndpoints } = this.#options;
    const known = before?.clusterId === own.clusterId ? before.lastVoters.flatMap((voter) => voter.clientUrls) : [];
    const first = [...new Set([config().etcd.clientUrl, ...roleEndpoints(), ...known])];
    const lists = await this.#ask(first);
    const named = lists.flatMap((list) => list.members.flatMap((member) => member.clientUrls));
    const all = [...lists, ...(await this.#ask([...new Set(named)].filter((endpoint) => !first.includes(endpoint))))];
    const foreign = all.find((list) => list.clusterId !== own.clusterId);
    if (foreign === undefined) return all;
    throw new OrderRefusedError(
      `a member of cluster ${formatId(foreign.clusterId)} answers, and the data directory is of cluster ${formatId(own.clusterId)}`,
      { hint: 'Correct the endpoints of the role document, or put the right data directory in place.' },
    );
  }

  async #ask(endpoints: readonly string[]): Promise<readonly MemberList[]> {
    const { cluster } = this.#options;
    const asked = endpoints.map((endpoint) =>
      cluster.memberList(endpoint, { linearizable: true, timeoutMs: askMs }).catch(() => undefined),
    );
    return (await Promise.all(asked)).filter((list): list is MemberList => list !== undefined);
  }

  #listThatHas(own: OwnData, lists: readonly MemberList[]): MemberList | undefined {
    const having = lists.filter((list) => selfIn(list, own) !== undefined);
    const others = lists.filter((list) => list.answeredBy !== own.memberId);
    const lacking = others.filter((list) => selfIn(list, own) === undefined);
    if (lacking.length === 0 || lacking.length * 2 < others.length) return having[0];
    throw new OrderRefusedError(
      `${namesOf(own)} is not in the list of ${lacking.map((list) => formatId(list.answeredBy)).join(', ')}: it was removed`,
      { hint: 'Started, it would end at once. Move the data away; see docs/runbook.md, "a member from scratch".' },
    );
  }

  #membershipLines(own: OwnData, lists: readonly MemberList[], list: MemberList | undefined): readonly string[] {
    const self = list === undefined ? undefined : selfIn(list, own);
    if (list === undefined || self === undefined) {
      return [`the data directory holds ${namesOf(own)}`, 'nobody answered: the other members are not known yet'];
    }
    const who = lists.map((one) => formatId(one.answeredBy)).join(', ');
    return [
      `the data directory holds ${namesOf(own)}`,
      `the list has it as a ${self.isLearner ? 'learner' : 'voter'}; ${votersOf(list.members).length} voters; ${who} answered`,
      ...lists
        .filter((one) => selfIn(one, own) === undefined)
        .map((one) => `warning: the list of ${formatId(one.answeredBy)} lacks it`),
      ...this.#addressDrift(self),
    ];
  }

  /** What the cluster has registered against what the configuration says. */
  #addressDrift(self: Member): readonly string[] {
    const { name, peerUrl, clientUrl } = this.#options.config().etcd;
    const lines: string[] = [];
    if (self.peerUrls.length > 0 && !self.peerUrls.includes(peerUrl)) {
      const there = self.peerUrls.join(', ');
      lines.push(
        `warning: the others dial it at ${there}, the configuration says ${peerUrl}: it must listen at the former until the cluster is told`,
      );
    }
    if (self.name !== '' && self.name !== name)
      lines.push(`warning: its name is ${self.name} and becomes ${name} (etcd.name)`);
    if (self.clientUrls.length > 0 && !self.clientUrls.includes(clientUrl))
      lines.push(`warning: clients know it at ${self.clientUrls.join(', ')}, and from its start on at ${clientUrl}`);
    return lines;
  }

  /** What it would be started with, and what stands in the way now. */
  #startLines(identity: IdentityRecord): readonly string[] {
    const { orders } = this.#options;
    const { problems } = orders.preflight(identity);
    const holder = orders.holder();
    return [...problems.map(({ what }) => `not started while: ${what}`), ...this.#driftOf(holder, identity)];
  }

  #driftOf(holder: Holder | undefined, identity: IdentityRecord): readonly string[] {
    const { orders } = this.#options;
    if (holder?.arguments === undefined) return [];
    try {
      const { arguments: ours } = orders.order(identity, false);
      return flagDrift(holder.arguments, ours).map((line) => `warning: ${line}`);
    } catch {
      // What is wrong with our own flags stands among the problems.
      return [];
    }
  }

  #asOnlyMember(id: bigint): Member {
    const { name, peerUrl, clientUrl } = this.#options.config().etcd;
    return { id, name, peerUrls: [peerUrl], clientUrls: [clientUrl], isLearner: false };
  }

  #identityFrom(own: OwnData, members: readonly Member[]): IdentityRecord {
    const { node, cluster, etcd } = this.#options.config();
    const plain = members.map((member) => ({
      ...member,
      peerUrls: [...member.peerUrls],
      clientUrls: [...member.clientUrls],
    }));
    return {
      nodeId: node.id,
      clusterName: cluster.name,
      clusterId: own.clusterId,
      memberId: own.memberId,
      name: etcd.name,
      peerUrl: etcd.peerUrl,
      grantId: this.#options.grantId(),
      // etcd reads these only while it has no log; they must name this member all the same.
      initialCluster: `${etcd.name}=${etcd.peerUrl}`,
      initialClusterToken: 'adopted',
      lastVoters: plain.filter((member) => !member.isLearner),
      lastMembers: plain,
    };
  }
}

const closing = 'it is recorded as the member of this node; nothing in the data directory is changed';

function selfIn(list: MemberList, own: OwnData): Member | undefined {
  return list.members.find((member) => member.id === own.memberId);
}

function namesOf({ memberId, clusterId }: { readonly memberId: bigint; readonly clusterId: bigint }): string {
  return `member ${formatId(memberId)} of cluster ${formatId(clusterId)}`;
}
