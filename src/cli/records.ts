import type { Config } from '../agent/config.ts';
import type { EventView, OutboxStatus } from '../agent/control.ts';
import type { Layout } from '../agent/layout.ts';
import type { OutboxControl } from '../agent/node-control.ts';
import type { OutboxPort } from '../agent/ports.ts';
import type { Clock } from '../base/clock.ts';
import type { Disk } from '../base/disk.ts';
import { AgentError, describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import { realDisk } from '../base/real-disk.ts';
import { Outbox } from '../upstream/outbox.ts';
import { OutboxRefusedError } from '../upstream/outbox-errors.ts';
import { OutboxView, outboxPort, SkipRefusedError } from './outbox-control.ts';
import { type Reporting, startReporting } from './reporting.ts';

/** The reports of this node: on disk, on their way upstream, and as an operator sees them. */
export interface Records {
  readonly port: OutboxPort;
  readonly control: OutboxControl;
  readonly reporting: Reporting;
  /** Why nothing can be reported, in words; undefined if all is well. The agent is supervise-only then. */
  readonly unusable: string | undefined;
  close(): void;
}

/** What they are opened with. */
export interface RecordsOptions {
  readonly config: Config;
  readonly layout: Layout;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Hears of every fact that was accepted. */
  readonly onAccepted: (kind: string, data: Readonly<Record<string, unknown>>) => void;
}

/** Opens the outbox. One that cannot be read, or is of a newer agent, keeps no etcd down: every report is refused then. */
export function openRecords(options: RecordsOptions): Records {
  const { config, layout, disk, clock, random, log, signal } = options;
  let outbox: Outbox;
  try {
    outbox = new Outbox({
      directory: layout.outboxDir,
      witness: layout.outboxWitness,
      // Not through the disk with the reserve: that is for the state directory, and the twin lies elsewhere.
      twin: { path: layout.outboxWitnessTwin, node: config.node.id, disk: realDisk },
      disk,
      clock,
      random,
      log: log.child({ part: 'outbox' }),
      limits: {
        bytes: config.outbox.maxBytes,
        facts: config.outbox.maxFacts,
        keepAckedMs: config.outbox.keepDays * 86_400_000,
      },
    });
  } catch (error) {
    if (!(error instanceof AgentError)) throw error;
    log.error({ error: describeError(error), hint: error.hint }, 'the outbox cannot be used; nothing is reported');
    return unusableRecords(layout.outboxDir, config.upstream.kind !== 'none', error);
  }
  const reporting = startReporting({ outbox, config, clock, random, log: log.child({ part: 'reporter' }), signal });
  const control = new OutboxView({ outbox, lastError: reporting.lastError, upstream: config.upstream.kind !== 'none' });
  const port = outboxPort(outbox, (fact) => {
    options.onAccepted(fact.kind, fact.data);
    control.accepted(fact);
  });
  return { port, control, reporting, unusable: undefined, close: () => outbox.close() };
}

function unusableRecords(directory: string, upstream: boolean, cause: AgentError): Records {
  const because = describeError(cause);
  return {
    port: {
      append(fact) {
        throw new OutboxRefusedError(`the report ${fact.kind}`, directory, cause);
      },
      acceptedAfter: () => [],
    },
    control: {
      status: (): OutboxStatus => ({
        upstream,
        stream: '',
        waiting: 0,
        lastSeq: 0,
        acknowledgedSeq: 0,
        parked: null,
        lastError: because,
      }),
      events: (): readonly EventView[] => [],
      follow: () => {},
      skip: () => Promise.reject(new SkipRefusedError(because, { hint: cause.hint })),
    },
    reporting: { lastError: () => because, end: () => Promise.resolve() },
    unusable: because,
    close: () => {},
  };
}
