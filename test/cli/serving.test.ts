// Goal: a listener that cannot be opened is tried again and told, and does not end the agent.
import { expect, test } from 'vitest';
import { AgentError } from '../../src/base/errors.ts';
import { silentLog } from '../../src/base/log.ts';
import { keepServing } from '../../src/cli/serving.ts';
import { FakeClock } from '../support/fake-clock.ts';

class PortTakenError extends AgentError {
  readonly code = 'PORT_TAKEN';
}

function subject(failures: number, isFatal?: (error: AgentError) => boolean) {
  const clock = new FakeClock();
  const seen = { tries: 0, closed: 0, problems: [] as (string | undefined)[] };
  const serving = keepServing({
    what: 'a test',
    start: async () => {
      seen.tries++;
      if (seen.tries <= failures) throw new PortTakenError('taken');
      return { close: async () => void seen.closed++ };
    },
    ...(isFatal === undefined ? {} : { isFatal }),
    onProblem: (problem) => void seen.problems.push(problem),
    clock,
    log: silentLog,
  });
  return { clock, seen, serving };
}

test('it serves at once, and is closed once', async () => {
  const { seen, serving } = subject(0);
  await (await serving).close();
  expect(seen).toEqual({ tries: 1, closed: 1, problems: [undefined] });
});

test('it is tried again every ten seconds until it works', async () => {
  const { clock, seen, serving } = subject(2);
  const running = await serving;
  expect(seen.problems).toEqual(['taken']);
  await clock.advance(10_000);
  await clock.advance(10_000);
  expect(seen).toEqual({ tries: 3, closed: 0, problems: ['taken', 'taken', undefined] });
  await running.close();
  expect(seen.closed).toBe(1);
});

test('closed meanwhile it is not tried again', async () => {
  const { clock, seen, serving } = subject(9);
  await (await serving).close();
  await clock.advance(60_000);
  expect(seen.tries).toBe(1);
  expect(clock.pendingTimers).toBe(0);
});

test('an error that is fatal is thrown', async () => {
  await expect(subject(1, (error) => error.code === 'PORT_TAKEN').serving).rejects.toThrow('taken');
});
