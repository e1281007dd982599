import type { AgentControl, EventQuery, EventView } from '../control.ts';
import type { EventStream } from './stream.ts';

/**
 * The events so far that the query asks for, then each new one. Subscribing and reading happen in one go, so none is
 * missed and none comes twice.
 */
export function streamEvents(control: AgentControl, query: EventQuery, stream: EventStream): void {
  let { after, stream: of } = query;
  const send = (event: EventView): void => {
    // A new stream of the outbox counts from 1 again.
    after = event.seq;
    of = event.stream;
    stream.send({ id: `${event.stream}/${event.seq}`, data: event });
  };
  const resumed = after !== undefined;
  for (;;) {
    const page = control.events(resumed ? { after, stream: of, limit: 1000 } : query);
    for (const event of page) send(event);
    // Without a start the last page is all; with one, pages follow until nothing is new.
    if (!resumed || page.length === 0 || stream.signal.aborted) break;
  }
  if (!stream.signal.aborted) control.followEvents(send, stream.signal);
}

/**
 * The last lines of the newest life, then each new line. Lines have no numbers: those that were written while the last
 * ones were read are recognised as the overlap of both.
 */
export async function streamLogs(control: AgentControl, lines: number, stream: EventStream): Promise<void> {
  const early: string[] = [];
  let send = (line: string): void => {
    early.push(line);
  };
  control.followLogs((line) => send(line), stream.signal);
  const history = await control.logs({ life: undefined, lines });
  for (const line of history) stream.send({ data: line });
  for (const line of early.slice(overlap(history, early))) stream.send({ data: line });
  send = (line) => stream.send({ data: line });
}

/** How many of the first `later` lines are the last of `earlier`; the most that fit. */
function overlap(earlier: readonly string[], later: readonly string[]): number {
  for (let length = Math.min(earlier.length, later.length); length > 0; length--) {
    const start = earlier.length - length;
    if (later.slice(0, length).every((line, index) => earlier[start + index] === line)) return length;
  }
  return 0;
}
