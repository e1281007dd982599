import { EtcdCallError } from './call.ts';
import { etcdErrorFrom } from './error-table.ts';
import type { ConditionalWrite, EtcdKey } from './keys.ts';

/** The result of a call, or its failure by name: an EtcdError, which knows whether a change may have been applied. */
export async function named<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof EtcdCallError)) throw error;
    const { endpoint, grpcCode: code, details } = error;
    throw etcdErrorFrom({ call: error.call, endpoint }, { code, details }, error.cause);
  }
}

/** The part of EtcdKeys that is wanted here. */
export interface NamedKeys {
  get(key: string, how: { readonly deadlineMs: number }): Promise<EtcdKey | undefined>;
  list(prefix: string, how: { readonly deadlineMs: number }): Promise<readonly EtcdKey[]>;
  put(key: string, value: string, how: { readonly deadlineMs: number }): Promise<unknown>;
  create(key: string, value: string, how: { readonly deadlineMs: number }): Promise<Pick<ConditionalWrite, 'applied'>>;
  replace(
    read: EtcdKey,
    value: string,
    how: { readonly deadlineMs: number },
  ): Promise<Pick<ConditionalWrite, 'applied'>>;
  remove(read: EtcdKey, how: { readonly deadlineMs: number }): Promise<Pick<ConditionalWrite, 'applied'>>;
}

/** Keys whose failures have names. */
export function namedKeys(keys: NamedKeys): NamedKeys {
  return {
    get: (key, how) => named(keys.get(key, how)),
    list: (prefix, how) => named(keys.list(prefix, how)),
    put: (key, value, how) => named(keys.put(key, value, how)),
    create: (key, value, how) => named(keys.create(key, value, how)),
    replace: (read, value, how) => named(keys.replace(read, value, how)),
    remove: (read, how) => named(keys.remove(read, how)),
  };
}
