import type { RolePort } from '../agent/assemble.ts';
import type { Config } from '../agent/config.ts';
import type { RoleView } from '../agent/control.ts';
import type { AgentEvent } from '../agent/events.ts';
import type { RoleSeen } from '../agent/observed.ts';
import type { Clock } from '../base/clock.ts';
import type { Disk } from '../base/disk.ts';
import { AgentError, describeError, errnoOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { type ClusterId, formatId } from '../etcd/member.ts';
import { type RoleEvent, RoleKeeper } from '../upstream/role-keeper.ts';
import { describeSource } from '../upstream/role-order.ts';
import { RoleSource } from '../upstream/role-source.ts';

export interface RoleLinkOptions {
  readonly config: () => Config;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  readonly stateDir: string;
  readonly clusterId: () => ClusterId | undefined;
  readonly onEvent: (event: AgentEvent) => void;
  readonly onChange: () => void;
  readonly signal: AbortSignal;
}

/** The role of this node, from its file: what was accepted last stays in force until something newer is. */
export class RoleLink implements RolePort {
  readonly #options: RoleLinkOptions;
  #keeper: RoleKeeper | undefined;
  #unreadable = '';
  #problem = 'the role file has not been read yet';
  #reported = '';

  constructor(options: RoleLinkOptions) {
    this.#options = options;
  }

  /**
   * Reads what was accepted last, then begins to watch the file. A record of a newer agent, or one that cannot be read,
   * makes the role unknown; it is never overwritten. Called once, when the identity of the node can be asked for.
   */
  start(): void {
    const { config, clock, log, signal } = this.#options;
    this.#keeper = this.#open();
    if (this.#keeper === undefined) return;
    const onEvent = (event: RoleEvent) => this.#heard(event);
    new RoleSource({ path: config().role.file, keeper: this.#keeper, clock, log, signal, onEvent });
  }

  #open(): RoleKeeper | undefined {
    const { disk, clock, log, stateDir, clusterId, config } = this.#options;
    const identity = () => {
      const id = clusterId();
      return { nodeId: config().node.id, clusterId: id === undefined ? undefined : formatId(id) };
    };
    try {
      return new RoleKeeper({ path: `${stateDir}/role`, disk, clock, log, identity });
    } catch (error) {
      if (!(error instanceof AgentError) && errnoOf(error) === undefined) throw error;
      this.#unreadable = describeError(error);
      log.error({ error: this.#unreadable }, 'the record of the role cannot be used');
      return undefined;
    }
  }

  role(): RoleSeen {
    const accepted = this.#keeper?.accepted;
    if (accepted === undefined) return { kind: 'unknown', because: this.#why() };
    return { kind: 'known', role: accepted.role.role, grantId: accepted.role.grantId, spent: false };
  }

  endpoints(): readonly string[] {
    return this.#keeper?.accepted?.role.endpoints ?? [];
  }

  grantId(): string {
    return this.#keeper?.accepted?.role.grantId ?? '';
  }

  view(): RoleView {
    const accepted = this.#keeper?.accepted;
    return {
      known: accepted !== undefined,
      role: accepted?.role.role ?? '',
      grantId: accepted?.role.grantId ?? '',
      epoch: accepted?.role.epoch ?? 0,
      generation: accepted?.role.generation ?? 0,
      source: accepted === undefined ? '' : describeSource(accepted.source),
      problem: this.#why(),
    };
  }

  #why(): string {
    return this.#unreadable !== '' ? this.#unreadable : (this.#keeper?.lostBecause ?? this.#problem);
  }

  #heard(event: RoleEvent): void {
    const { log, onChange } = this.#options;
    switch (event.kind) {
      case 'unknown':
        this.#problem = event.why;
        log.info({ why: event.why }, 'the role is unknown; what was accepted last stays in force');
        break;
      case 'refused':
        this.#problem = event.why;
        log.warn({ why: event.why }, 'the role document was refused; what was accepted last stays in force');
        this.#report({ kind: 'role.refused', because: event.why });
        break;
      case 'accepted': {
        const { role, epoch, generation } = event.role;
        this.#problem = '';
        log.info({ role, epoch, generation }, 'the role was accepted');
        this.#report({ kind: 'role.accepted', role, epoch, generation });
      }
    }
    onChange();
  }

  /** The same document is read at every start of the agent; it is news only once. */
  #report(event: AgentEvent): void {
    const text = JSON.stringify(event);
    if (text === this.#reported) return;
    this.#reported = text;
    try {
      this.#options.onEvent(event);
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      this.#options.log.warn({ error: describeError(error) }, 'a report about the role was not accepted');
    }
  }
}
