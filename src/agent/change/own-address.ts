import { AgentError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ClusterPort } from '../ports.ts';
import type { AgentState } from '../state/agent-state.ts';
import type { IdentityRecord } from '../state/schemas.ts';
import type { ClusterChanges } from './cluster-change.ts';

/** Our own etcd does not answer at the address that is to be registered; nothing was changed. */
export class AddressNotServedError extends AgentError {
  readonly code = 'ADDRESS_NOT_SERVED';
}

export interface OwnAddressOptions {
  readonly state: AgentState;
  readonly cluster: ClusterPort;
  readonly changes: ClusterChanges;
  readonly log: Log;
  readonly clientUrl: () => string;
  readonly endpoints: () => readonly string[];
}

/** How long the own peer listener has to answer. Unit: ms. */
const askPeerMs = 2_000;

/** The peer URL under which the own voter is registered. Never for a learner: older versions of etcd spoil its flag. */
export class OwnAddress {
  readonly #options: OwnAddressOptions;

  constructor(options: OwnAddressOptions) {
    this.#options = options;
  }

  /** Throws {@link AddressNotServedError}, and as ClusterChanges.make does. */
  async register(identity: IdentityRecord, peerUrl: string): Promise<void> {
    const { state, changes, log, clientUrl, endpoints } = this.#options;
    await this.#mustAnswer(identity, peerUrl);
    const { text } = await changes.make({
      change: { kind: 'updateUrls', memberId: identity.memberId, peerUrls: [peerUrl] },
      endpoints: endpoints(),
      clusterId: identity.clusterId,
      accepted: [],
      force: false,
      self: { memberId: identity.memberId, endpoint: clientUrl() },
      afterwards: () => state.recordIdentity({ ...identity, peerUrl, initialCluster: replaced(identity, peerUrl) }),
    });
    log.info({ text }, 'the peer URL was registered');
  }

  /** A registered address at which nobody listens cuts the member off from the others. */
  async #mustAnswer({ clusterId }: IdentityRecord, peerUrl: string): Promise<void> {
    let answer: Awaited<ReturnType<ClusterPort['peerCluster']>>;
    try {
      answer = await this.#options.cluster.peerCluster(peerUrl, askPeerMs);
    } catch (cause) {
      throw new AddressNotServedError(`our etcd does not answer at ${peerUrl}, which is to be registered`, {
        cause,
        hint: 'etcd listens there from its next start on: `etcd-node-agent stop`, then `start`.',
      });
    }
    if (answer.clusterId === clusterId) return;
    throw new AddressNotServedError(`another cluster answers at ${peerUrl}`, { hint: 'Correct etcd.peerUrl.' });
  }
}

/** Only an etcd without a log reads it; it must not contradict what is advertised. */
function replaced({ initialCluster, name, peerUrl: before }: IdentityRecord, peerUrl: string): string {
  return initialCluster
    .split(',')
    .map((entry) => (entry === `${name}=${before}` ? `${name}=${peerUrl}` : entry))
    .join(',');
}
