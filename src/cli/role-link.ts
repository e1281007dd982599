import type { RolePort } from '../agent/assemble.ts';
import type { Config } from '../agent/config.ts';
import type { RoleView } from '../agent/control.ts';
import type { AgentEvent } from '../agent/events.ts';
import type { RoleSeen } from '../agent/observed.ts';
import { OrderRefusedError } from '../agent/order-refused.ts';
import type { RoleLinkPort } from '../agent/role-orders.ts';
import type { Clock } from '../base/clock.ts';
import type { Disk } from '../base/disk.ts';
import { AgentError, describeError, errnoOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { type ClusterId, formatId, parseId } from '../etcd/member.ts';
import { type RoleEvent, RoleKeeper } from '../upstream/role-keeper.ts';
import { describeSource, setAnew } from '../upstream/role-order.ts';
import { RoleSource } from '../upstream/role-source.ts';

/** The record of the accepted role cannot be read. That is not the same as absent. */
export class RoleUnreadableError extends AgentError {
  readonly code = 'ROLE_UNREADABLE';
  constructor(path: string, cause: unknown) {
    super(`${path} cannot be read`, { cause, hint: 'See docs/runbook.md, "state that cannot be read".' });
  }
}

export interface RoleLinkOptions {
  readonly config: () => Config;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  readonly stateDir: string;
  readonly clusterId: () => ClusterId | undefined;
  /** Hears what became of each document, also of one that was read before. */
  readonly onEvent: (event: Extract<AgentEvent, { readonly kind: 'role.accepted' | 'role.refused' }>) => void;
  readonly onChange: () => void;
  readonly signal: AbortSignal;
}

/** The role of this node, from its file: what was accepted last stays in force until something newer is. */
export class RoleLink implements RolePort, RoleLinkPort {
  readonly #options: RoleLinkOptions;
  #keeper: RoleKeeper | undefined;
  #unreadable: AgentError | undefined;
  #file: string;
  #stopWatching = new AbortController();
  #problem = 'the role file has not been read yet';
  #refused = false;

  constructor(options: RoleLinkOptions) {
    this.#options = options;
    this.#file = options.config().role.file;
  }

  /**
   * Reads what was accepted last, then begins to watch the file. A record of a newer agent, or one that cannot be read,
   * makes the role unknown; it is never overwritten. Called once, when the identity of the node can be asked for.
   */
  start(): void {
    this.#keeper = this.#open();
    if (this.#keeper !== undefined) this.#startSource(this.#keeper);
  }

  keeper(): RoleKeeper {
    if (this.#keeper !== undefined) return this.#keeper;
    throw this.#unreadable ?? new OrderRefusedError('the record of the role has not been read yet');
  }

  /** Why the record of the role cannot be used, in words; undefined if all is well. The agent is supervise-only then. */
  unusable(): string | undefined {
    if (this.#unreadable !== undefined) return describeError(this.#unreadable);
    const lost = this.#keeper?.lostBecause;
    return lost === undefined ? undefined : `${lost}; ${setAnew({ kind: 'file', name: this.#file })}`;
  }

  file(): string {
    return this.#file;
  }

  async watch(file: string): Promise<void> {
    this.#stopWatching.abort();
    this.#stopWatching = new AbortController();
    this.#file = file;
    await this.#startSource(this.keeper()).readNow();
  }

  #startSource(keeper: RoleKeeper): RoleSource {
    const { clock, log } = this.#options;
    const signal = AbortSignal.any([this.#options.signal, this.#stopWatching.signal]);
    const onEvent = (event: RoleEvent) => this.#heard(event);
    return new RoleSource({ path: this.#file, keeper, clock, log, signal, onEvent });
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
      this.#unreadable = error instanceof AgentError ? error : new RoleUnreadableError(`${stateDir}/role`, error);
      log.error({ error: describeError(this.#unreadable) }, 'the record of the role cannot be used');
      return undefined;
    }
  }

  role(): RoleSeen {
    const accepted = this.#keeper?.accepted;
    if (accepted === undefined) return { kind: 'unknown', because: this.#why() };
    const { role, grantId, clusterId, endpoints, accept } = accepted.role;
    return {
      kind: 'known',
      role,
      grantId,
      spent: false,
      clusterId: clusterId === undefined ? undefined : parseId(clusterId),
      hasEndpoints: endpoints.length > 0,
      accepted: accept,
    };
  }

  endpoints(): readonly string[] {
    return this.#keeper?.accepted?.role.endpoints ?? [];
  }

  grantId(): string {
    return this.#keeper?.accepted?.role.grantId ?? '';
  }

  etcdVersion(): string | undefined {
    return this.#keeper?.accepted?.role.etcdVersion;
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
      refused: this.#refused,
    };
  }

  #why(): string {
    return this.unusable() ?? this.#problem;
  }

  #heard(event: RoleEvent): void {
    const { log, onChange } = this.#options;
    switch (event.kind) {
      case 'unknown':
        this.#problem = event.why;
        this.#refused = false;
        log.info({ why: event.why }, 'the role is unknown; what was accepted last stays in force');
        break;
      case 'refused':
        this.#problem = event.why;
        this.#refused = true;
        log.warn({ why: event.why }, 'the role document was refused; what was accepted last stays in force');
        this.#options.onEvent({ kind: 'role.refused', because: event.why });
        break;
      case 'accepted': {
        const { role, epoch, generation } = event.role;
        this.#problem = '';
        this.#refused = false;
        log.info({ role, epoch, generation }, 'the role was accepted');
        this.#options.onEvent({ kind: 'role.accepted', role, epoch, generation });
      }
    }
    onChange();
  }
}
