import type { Disk } from '../base/disk.ts';
import { AgentError, errnoOf } from '../base/errors.ts';
import { readCommandLine } from './command-line.ts';
import { flagChanges } from './flag-drift.ts';
import type { Layout } from './layout.ts';
import type { ChildPort } from './ports.ts';
import type { StartOrders } from './start-order.ts';
import type { AgentState } from './state/agent-state.ts';

/** What the etcd that runs has not got yet of the configuration: it takes effect with its next start, which is never by itself. */
export class PendingStart {
  readonly #options: PendingStartOptions;

  constructor(options: PendingStartOptions) {
    this.#options = options;
  }

  /** One sentence for each difference; empty while nothing runs or the next command is not known. Never throws. */
  look(): readonly string[] {
    const { child, disk, layout, state, orders } = this.#options;
    const { phase } = child.view();
    const identity = state.knownIdentity();
    if ((phase !== 'ready' && phase !== 'starting') || identity === undefined) return [];
    try {
      const written = disk.read(layout.commandLine);
      if (written === undefined) return [];
      const next = orders.order(identity, false);
      const [binary = '', ...flags] = readCommandLine(new TextDecoder().decode(written));
      const moved = binary === next.binary ? [] : [`it was started from ${binary}, and would be from ${next.binary}`];
      return [...moved, ...this.#versionChange(next.version), ...flagChanges(flags, next.arguments)];
    } catch (error) {
      // A file that cannot be read tells nothing; what is wrong with the next start is shown before it is made.
      if (error instanceof AgentError || errnoOf(error) !== undefined) return [];
      throw error;
    }
  }

  #versionChange(next: string): readonly string[] {
    const used = this.#options.state.usedVersion.read();
    if (used.kind !== 'ok' || used.value.version === next) return [];
    return [`etcd ${used.value.version} runs, and the binary is ${next}`];
  }
}

export interface PendingStartOptions {
  readonly child: ChildPort;
  readonly disk: Disk;
  readonly layout: Layout;
  readonly state: AgentState;
  readonly orders: Pick<StartOrders, 'order'>;
}
