import { test as base } from 'vitest';
import { budgetPath, takeFromBudget } from './etcd-budget.ts';
import { Fleet, type FleetOptions } from './fleet.ts';
import { WebhookReceiver } from './webhook-receiver.ts';

/** Makes a founded fleet that ends with the test; when the test fails, its last lines are printed. */
export type MakeFleet = (options?: FleetOptions & { readonly founded?: boolean }) => Promise<Fleet>;

/** Waits for this test's share of the etcd processes; it is given back once all that the test made is gone. */
export type TakeShare = (etcdAtOnce: number) => Promise<void>;

/**
 * vitest's `test` with `fleet` and `receiver`. `fleet()` founds three nodes; `fleet({ founded: false })` only makes them.
 */
export const test = base
  .extend(
    'share', // biome-ignore lint/correctness/noEmptyPattern: vitest reads the pattern
    async ({}, { onCleanup }): Promise<TakeShare> => {
      let giveBack: (() => void) | undefined;
      onCleanup(() => giveBack?.());
      return async (etcdAtOnce) => {
        giveBack = await takeFromBudget(budgetPath(), etcdAtOnce);
      };
    },
  )
  // `share` is named so that it outlives the fleet.
  .extend('fleet', async ({ task, share: _share }, { onCleanup }): Promise<MakeFleet> => {
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
