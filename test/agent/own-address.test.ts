// Goal: this node's own etcd is asked where the configuration says that it serves, also after that has changed.
// Method: the whole agent, booted again with another client URL, and an etcd that answers there alone.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AgentMachine, cluster, others, us } from './agent-machine.ts';

const moved = 'http://a3.moved:2379';

let machine: AgentMachine;
beforeEach(() => {
  machine = new AgentMachine();
  machine.etcdConfig = { clientUrl: moved };
});
afterEach(async () => {
  await machine.endAgent();
});

test('the list is read and the Status asked at the new address', async () => {
  machine.answerAt(moved, us, [...others, us]);
  machine.boot();
  await machine.until(() => machine.parts.membership.latest !== undefined, 'the list is read');
  expect(machine.factsOf('member.added')).toHaveLength(3);
  expect(machine.statusAsked).toContain(moved);
  expect(machine.statusAsked).not.toContain('http://a3:2379');
});

test('leadership is handed over from the new address before a stop', async () => {
  machine.answerAt(moved, us, [...others, us]);
  const follows = { leader: us, clusterId: cluster, isLearner: false };
  // The list has the old address until etcd has published the new one.
  machine.statuses.set('http://a3:2379', { ...follows, memberId: us });
  machine.statuses.set('http://a1:2379', { ...follows, memberId: others[0] });
  machine.boot();
  machine.leads = true;
  void machine.parts.operator.shutdown({ dryRun: false });
  await machine.until(() => machine.child.view().phase === 'down', 'it is stopped');
  expect(machine.leadMoves).toEqual([{ endpoint: moved, target: others[0] }]);
});
