import { test as base } from 'vitest';
import { Fleet, type FleetOptions } from './fleet.ts';
import { WebhookReceiver } from './webhook-receiver.ts';

/** Makes a founded fleet that ends with the test; when the test fails, its last lines are printed. */
export type MakeFleet = (options?: FleetOptions & { readonly founded?: boolean }) => Promise<Fleet>;

/**
 * vitest's `test` with `fleet` and `receiver`. `fleet()` founds three nodes; `fleet({ founded: false })` only makes them.
 */
export const test = base
  .extend('fleet', async ({ task }, { onCleanup }): Promise<MakeFleet> => {
    const made: Fleet[] = [];
    onCleanup(async () => {
      for (const fleet of made) {
        if (task.result?.state === 'fail') process.stderr.write(`${task.name}\n${fleet.lastLines()}\n`);
        await fleet.close();
      }
    });
    return async (options = {}) => {
      const fleet = options.founded === false ? await Fleet.make(options) : await Fleet.founded(options);
      made.push(fleet);
      return fleet;
    };
  })
  .extend(
    'receiver', // biome-ignore lint/correctness/noEmptyPattern: vitest reads the pattern
    async ({}, { onCleanup }) => {
      const receiver = await WebhookReceiver.start();
      onCleanup(() => receiver.close());
      return receiver;
    },
  );
