import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type ChangeRecord, changeRecordKey, decodeChangeRecord } from '../../src/etcd/change-record.ts';
import { etcdctl } from './etcdctl.ts';
import type { FleetNode } from './fleet.ts';

/** One holding of the change record, as etcd's own history of the key has it. */
export interface Holding {
  readonly by: string;
  readonly kind: ChangeRecord['kind'];
  /** Every phase that was written, in order. */
  readonly phases: ChangeRecord['phase'][];
}

interface WatchAnswer {
  readonly Events?: readonly {
    /** Absent: a put. */
    readonly type?: number;
    readonly kv: { readonly key: string; readonly value?: string };
  }[];
}

/**
 * Who held the change record, from the first write of the key to now. Throws if one holding began before the one before it
 * was cleared, or if the record is held now. A fleet without TLS, whose history was not compacted.
 */
export async function changeHistory(node: FleetNode): Promise<readonly Holding[]> {
  const end = `test/end-of-history-${Date.now()}`;
  await etcdctl(node, 'put', end, '');
  const ctl = join(node.binary.directory, 'etcdctl');
  const watch = spawn(ctl, ['--endpoints', node.clientUrl, 'watch', '--prefix', '--rev=1', '-w', 'json', ''], {
    env: { PATH: process.env['PATH'] ?? '', ETCDCTL_API: '3' },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 20_000,
  });
  const ended = once(watch, 'exit');
  const history: Holding[] = [];
  let held: { readonly operation: string; readonly holding: Holding } | undefined;
  try {
    for await (const line of createInterface(watch.stdout)) {
      for (const { type, kv } of (JSON.parse(line) as WatchAnswer).Events ?? []) {
        const key = text(kv.key);
        if (key === end) {
          if (held !== undefined) throw new Error(`the change record is held by ${held.holding.by}`);
          return history;
        }
        if (key !== changeRecordKey) continue;
        if (type !== undefined) {
          held = undefined;
          continue;
        }
        const record = decodeChangeRecord(text(kv.value ?? ''));
        if (record === undefined) throw new Error(`what stands in ${key} is no change record`);
        if (held === undefined) {
          const { by, kind, operation } = record;
          held = { operation, holding: { by, kind, phases: [] } };
          history.push(held.holding);
        }
        if (held.operation !== record.operation) {
          throw new Error(`${record.by} wrote over the record of ${held.holding.by}: ${record.kind} ${record.target}`);
        }
        held.holding.phases.push(record.phase);
      }
    }
    throw new Error('the watch ended before the history did');
  } finally {
    watch.kill('SIGKILL');
    await ended;
  }
}

function text(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8');
}
