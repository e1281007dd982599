// Goal: the table says what ARCHITECTURE promises; nothing starts while a child lives, every living state ends.
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InvariantError } from '../../src/base/errors.ts';
import { advance, type Event, onEnter, type State, transitions } from '../../src/supervisor/machine.ts';

const states = Object.keys(transitions) as State[];
const events = Object.keys(transitions.idle) as Event[];
const living: readonly State[] = ['launching', 'starting', 'ready', 'stopping', 'killing'];

describe('machine', () => {
  test('every state answers every event: with a state, with nothing, or as a bug', () => {
    for (const state of states) {
      expect(Object.keys(transitions[state]).sort()).toEqual([...events].sort());
      for (const event of events) {
        const cell = transitions[state][event];
        if (cell === 'bug') expect(() => advance(state, event)).toThrow(InvariantError);
        else if (cell === 'same') expect(advance(state, event)).toEqual({ state, actions: [] });
        else expect(advance(state, event)).toEqual({ state: cell, actions: onEnter[cell] });
      }
    }
  });

  test('a launch is entered only from states without a child', () => {
    for (const state of states) {
      const launches = events.some((event) => transitions[state][event] === 'launching');
      expect(launches).toBe(!living.includes(state));
    }
  });

  test('from each state in which a child can live, its end leads to ended, and stop and kill lead towards it', () => {
    for (const state of living) {
      if (state !== 'launching') expect(transitions[state].exited).toBe('ended');
      expect(['stopping', 'killing', 'same']).toContain(transitions[state].stop);
      expect(['killing', 'same']).toContain(transitions[state].kill);
    }
  });

  test('KILL comes only after TERM had its grace, or when an end at once was asked for', () => {
    for (const state of states) {
      for (const event of events) {
        if (transitions[state][event] === 'killing') expect(['kill', 'graceOver']).toContain(event);
      }
    }
  });

  test('no sequence of possible events leads into a launch while an earlier launch has no end', () => {
    void fc.assert(
      fc.property(fc.array(fc.constantFrom(...events), { maxLength: 60 }), (sequence) => {
        let state: State = 'idle';
        let open = 0;
        for (const event of sequence) {
          if (transitions[state][event] === 'bug') continue;
          const next = advance(state, event);
          if (
            next.actions.includes('launch') ||
            (event === 'adopted' && state !== 'launching' && next.state === 'starting')
          )
            open += 1;
          if (next.state === 'ended' && state !== 'ended') open -= 1;
          state = next.state;
          expect(open).toBeLessThanOrEqual(1);
          expect(open === 1).toBe(living.includes(state));
        }
      }),
    );
  });
});
