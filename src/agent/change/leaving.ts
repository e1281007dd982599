import { type Clock, timestamp } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { AcceptedRisk } from '../../etcd/accepted-risk.ts';
import type { Effects } from '../effects.ts';
import type { AgentState } from '../state/agent-state.ts';
import type { IdentityRecord } from '../state/schemas.ts';
import type { ClusterChanges } from './cluster-change.ts';

export interface LeavingOptions {
  readonly state: AgentState;
  readonly changes: ClusterChanges;
  readonly effects: Effects;
  readonly clock: Clock;
  readonly log: Log;
  /** Where the own etcd serves its clients. */
  readonly clientUrl: () => string;
  readonly endpoints: () => readonly string[];
  readonly accepted: () => readonly AcceptedRisk[];
  readonly grantId: () => string;
}

/** The own member leaves its cluster: handed over, removed through another voter, and that written down as proof. */
export class Leaving {
  readonly #options: LeavingOptions;

  constructor(options: LeavingOptions) {
    this.#options = options;
  }

  /** `running`: its etcd can hand leadership over. Throws as ClusterChanges.make does. */
  async leave(
    identity: IdentityRecord,
    running: boolean,
    because: string,
    how: {
      readonly keepsGrant?: boolean;
      readonly accepted?: readonly AcceptedRisk[];
      readonly withoutRecord?: boolean;
      /** Right after the removal is known and recorded. */
      readonly afterwards?: () => void;
    } = {},
  ): Promise<string> {
    const { changes, effects, state, clock, log, endpoints, accepted, grantId } = this.#options;
    const { clusterId, memberId } = identity;
    // `replace` joins anew under the same grant: then none ends with it.
    const ended = how.keepsGrant === true ? '' : grantId();
    const record = { clusterId, memberId, grantId: ended, because, at: timestamp(clock), retires: false };
    const { text } = await changes.make({
      change: { kind: 'remove', memberId, provenDead: !running },
      endpoints: endpoints(),
      clusterId,
      accepted: [...accepted(), ...(how.accepted ?? [])],
      force: false,
      withoutRecord: how.withoutRecord === true,
      self: running ? { memberId, endpoint: this.#options.clientUrl() } : undefined,
      beforeAct: () => effects.do('leave.intend', () => state.leave.write({ ...record, state: 'intended' })),
      afterwards: () => {
        effects.do('leave.removed', () => state.leave.write({ ...record, state: 'removed' }));
        how.afterwards?.();
      },
    });
    log.info({ text }, 'this member has left its cluster');
    return text;
  }
}
