import { EtcdCallError } from '../src/etcd/call.ts';
import { eventually } from './eventually.ts';
import { withClient } from './with-client.ts';

/**
 * Removes a member by a call to another one, as an operator would with etcdctl; waits out etcd's rule that members must
 * have been connected for 5 s. Returns the moment of the successful call (performance.now()).
 */
export async function removeMember(throughUrl: string, id: bigint, signal?: AbortSignal): Promise<number> {
  return await eventually(
    () =>
      withClient(throughUrl, async (client) => {
        const at = performance.now();
        try {
          await client.removeMember(id);
        } catch (error) {
          if (error instanceof EtcdCallError && /unhealthy cluster/.test(error.details)) throw error;
          // Anything else is unknown: the list says what came of it.
          const list = await client.memberList({ linearizable: true });
          if (list.members.some((member) => member.id === id)) throw error;
        }
        return at;
      }),
    { withinMs: 30_000, everyMs: 200, what: 'the removal', signal },
  );
}
