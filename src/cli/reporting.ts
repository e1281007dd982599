import type { Config } from '../agent/config.ts';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import type { Outbox } from '../upstream/outbox.ts';
import { Reporter } from '../upstream/reporter.ts';
import { Webhook } from '../upstream/webhook.ts';

/** The link that carries the reports away. */
export interface Reporting {
  /** The last failure in words; empty if all is well or nobody is to be told. */
  lastError(): string;
  /** Resolves when nothing is sent any more, soon after the signal aborted. */
  end(): Promise<void>;
}

/** Starts to send the outbox to whom the configuration names. Without an upstream the facts stay on disk, within their bounds. */
export function startReporting(options: {
  readonly outbox: Outbox;
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly signal: AbortSignal;
}): Reporting {
  const { upstream, node, timing } = options.config;
  if (upstream.kind === 'none') return { lastError: () => '', end: () => Promise.resolve() };
  const { ca, cert, key } = upstream.tls ?? {};
  const transport = new Webhook({
    url: upstream.url,
    nodeId: node.id,
    clock: options.clock,
    ...(ca === undefined ? {} : { caFile: ca }),
    ...(cert === undefined ? {} : { certFile: cert }),
    ...(key === undefined ? {} : { keyFile: key }),
    ...(upstream.tokenFile === undefined ? {} : { tokenFile: upstream.tokenFile }),
  });
  const reporter = new Reporter({
    ...options,
    transport,
    timing: { backoffFirstMs: timing.reportFirstMs, backoffMaxMs: timing.reportMaxMs },
  });
  const running = reporter.run();
  return { lastError: () => reporter.status.problem ?? '', end: () => running };
}
