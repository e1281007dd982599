// Goal: before a start it is known who else has the data open.
// Method: StartOrders with a machine that names the processes which hold the file.
import { expect, test } from 'vitest';
import { type Holder, StartOrders, type StartOrdersOptions } from '../../src/agent/start-order.ts';

test('a foreign process is named although our own etcd holds the data, too, and comes first', () => {
  const own: Holder = { pid: 10, command: '/usr/bin/etcd' };
  const foreign: Holder = { pid: 77, command: '/opt/other/etcd' };
  expect(holder({ holders: [own, foreign], ownPid: 10 })).toEqual(foreign);
  expect(holder({ holders: [foreign, own], ownPid: 10 })).toEqual(foreign);
  expect(holder({ holders: [own], ownPid: 10 })).toBeUndefined();
  expect(holder({ holders: [], ownPid: undefined })).toBeUndefined();
});

function holder({ holders, ownPid }: { readonly holders: readonly Holder[]; readonly ownPid: number | undefined }) {
  const options: Partial<StartOrdersOptions> = {
    layout: { dataDir: '/data' } as StartOrdersOptions['layout'],
    holdersOf: () => holders,
    ownPid: () => ownPid,
  };
  return new StartOrders(options as StartOrdersOptions).holder();
}
