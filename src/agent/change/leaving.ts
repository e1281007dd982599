import { type Clock, timestamp } from '../../base/clock.ts';
import { AgentError, describeError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { AcceptedRisk } from '../../etcd/accepted-risk.ts';
import { outcomeOf } from '../../etcd/error-table.ts';
import { formatId } from '../../etcd/member.ts';
import { quorumOf } from '../../etcd/quorum.ts';
import type { Effects } from '../effects.ts';
import type { AgentState } from '../state/agent-state.ts';
import type { IdentityRecord, LeaveRecord } from '../state/schemas.ts';
import { ChangeLostError } from './change-lock.ts';
import { ChangeLateError, ChangeRefusedError, type ClusterChanges, HandOverFailedError } from './cluster-change.ts';
import type { Heard } from './hearing.ts';

/** A list lacks this member, and it is not proven that it was removed. Nothing was changed. */
export class LeaveUnprovenError extends AgentError {
  readonly code = 'LEAVE_UNPROVEN';
}

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
      /** The grant that ends with this membership. Default: none does, and the node joins anew under the same. */
      readonly endsGrant?: string;
      readonly accepted?: readonly AcceptedRisk[];
      readonly withoutRecord?: boolean;
      /** Its data is lost or never was: it cannot come back, so that no tolerance is lost with it. */
      readonly provenDead?: boolean;
      /** Right after the removal is known and recorded. */
      readonly afterwards?: () => void;
    } = {},
  ): Promise<string> {
    const { changes, effects, state, clock, log, endpoints, accepted } = this.#options;
    const { clusterId, memberId } = identity;
    const record = { clusterId, memberId, grantId: how.endsGrant ?? '', because, at: timestamp(clock), retires: false };
    let intended = false;
    const making = changes.make({
      change: { kind: 'remove', memberId, provenDead: how.provenDead === true },
      endpoints: endpoints(),
      clusterId,
      accepted: [...accepted(), ...(how.accepted ?? [])],
      force: false,
      withoutRecord: how.withoutRecord === true,
      self: running ? { memberId, endpoint: this.#options.clientUrl() } : undefined,
      beforeAct: () => {
        intended = true;
        effects.do('leave.intend', () => state.leave.write({ ...record, state: 'intended' }));
      },
      afterwards: (_list, outcome, heard) => {
        if (outcome === 'needless' && how.provenDead !== true) this.#mustBeProven(identity, heard);
        effects.do('leave.removed', () => state.leave.write({ ...record, state: 'removed' }));
        how.afterwards?.();
      },
    });
    const { text } = await making.catch((error: unknown) => {
      if (intended && error instanceof AgentError && didNothing(error)) this.#refused(record);
      throw error;
    });
    log.info({ text }, 'this member has left its cluster');
    return text;
  }

  /** An intent counts for a proof only while the fate of its removal is not known. */
  #refused(record: Omit<LeaveRecord, 'state'>): void {
    const { effects, state, log } = this.#options;
    try {
      effects.do('leave.refused', () => state.leave.write({ ...record, state: 'refused' }));
    } catch (failure) {
      if (!(failure instanceof AgentError)) throw failure;
      log.warn({ error: describeError(failure) }, 'that a leave was refused could not be written down');
    }
  }

  /**
   * A removal of ours whose answer was lost is read back here. One list alone is no proof of it: a stale member that was forced into a
   * cluster of its own answers with the right cluster id. Throws {@link LeaveUnprovenError}.
   */
  #mustBeProven({ memberId, lastVoters }: IdentityRecord, heard: Heard): void {
    const leave = this.#options.state.leave.read();
    const ours = leave.kind === 'ok' && leave.value.memberId === memberId && leave.value.state !== 'refused';
    const others = lastVoters.filter(({ id }) => id !== memberId);
    const agreeing = others.filter(({ id }) => heard.answers.some((answer) => answer.memberId === id));
    const needed = quorumOf(Math.max(1, others.length));
    if (ours && agreeing.length >= needed) return;
    throw new LeaveUnprovenError(
      `the list that ${heard.through} gave lacks member ${formatId(memberId)}, ${
        ours
          ? `and ${agreeing.length} of ${others.length} other voters stand behind it, ${needed} are needed`
          : 'and this node has not removed it'
      }`,
      {
        hint: 'The agent asks the others whether it was removed. See docs/runbook.md, "a removal that cannot be confirmed".',
      },
    );
  }
}

/** Whether nothing was sent, or etcd refused it: the removal will not come to be. */
function didNothing(error: AgentError): boolean {
  const unsent = [ChangeRefusedError, ChangeLateError, ChangeLostError, HandOverFailedError];
  return unsent.some((kind) => error instanceof kind) || outcomeOf(error) === 'refused';
}
