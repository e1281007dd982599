// Goal: whoever follows the events gets each one once, across a new stream of the outbox, whose numbers start at 1 again.
// Method: the stream of events over an agent that answers what the test says.
import { expect, test } from 'vitest';
import { streamEvents } from '../../../src/agent/api/follow.ts';
import type { EventStream, StreamItem } from '../../../src/agent/api/stream.ts';
import type { EventQuery, EventView } from '../../../src/agent/control.ts';
import { exampleEvent, FakeControl } from '../../support/fake-control.ts';

const event = (id: string): EventView => exampleEvent(Number(id.slice(1)), { stream: id.slice(0, 1), id });
const events = (ids: string): EventView[] => ids.split(' ').map(event);

/** Follows, hears `live` besides, and gives the ids of the events that were sent, with where each one is resumed. */
function followed(control: FakeControl, query: EventQuery, live: string) {
  const items: StreamItem[] = [];
  const stream: Pick<EventStream, 'send' | 'signal'> = {
    send: (item) => void items.push(item),
    signal: new AbortController().signal,
  };
  streamEvents(control, query, stream as EventStream);
  for (const one of events(live)) control.emit(one);
  return { sent: items.map(({ data }) => (data as EventView).id).join(' '), ids: items.map(({ id }) => id) };
}

test('a new stream in the history and another while it is followed', () => {
  const control = new FakeControl();
  control.eventViews = events('a96 a97 a98 b1 b2');
  const { sent, ids } = followed(control, { after: undefined, limit: 100 }, 'b3 b4 c1 c2');
  expect(sent).toBe('a96 a97 a98 b1 b2 b3 b4 c1 c2');
  expect(ids.slice(0, 4)).toEqual(['a/96', 'a/97', 'a/98', 'b/1']);
});

test('it is resumed within a stream that has ended meanwhile', () => {
  const control = new FakeControl();
  control.eventViews = events('a96 a97 a98 b1 b2');
  expect(followed(control, { after: 97, stream: 'a', limit: 100 }, 'b3').sent).toBe('a98 b1 b2 b3');
});

test('a number alone is one of the stream of today', () => {
  const control = new FakeControl();
  control.eventViews = events('a96 a97 a98 b1 b2');
  expect(followed(control, { after: 1, limit: 100 }, 'b3').sent).toBe('b2 b3');
});
