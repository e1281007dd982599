import * as z from 'zod';
import {
  absolutePath,
  dialledUrl,
  duration,
  label,
  listenAddress,
  listenUrl,
  shown,
  size,
  textOf,
  wants,
  webhookUrl,
  whole,
} from './config-values.ts';
import { printable } from './printable.ts';

/**
 * The shape of the configuration file, field by field. What concerns more than one field stands in config-rules.ts; units,
 * defaults, ranges and reasons stand at the fields of agent/config.ts and, for operators, in docs/configuration.md.
 */
export const fileSchema = section('a mapping with the sections of docs/configuration.md', {
  node: section('a mapping with id', {
    id: label().describe('Name of this node towards upstream. Never changes.'),
  }).describe('This node.'),
  cluster: section('a mapping with name', {
    name: label().default('default').describe('Our name of the cluster; a directory below dataRoot. Never changes.'),
  })
    .prefault({})
    .describe('The cluster.'),
  dataRoot: absolutePath('/srv/etcd').describe(
    'Data and archives lie below it, on one file system. May be a mount point; what is below may not.',
  ),
  mustBeMount: yesNo(false).describe('Demands that dataRoot is a mount point from the first start on.'),
  stateDir: absolutePath('/var/lib/etcd-node-agent')
    .default('/var/lib/etcd-node-agent')
    .describe("The agent's own records. Outside dataRoot, so that they survive a lost volume."),
  runDir: absolutePath('/run/etcd-node-agent')
    .default('/run/etcd-node-agent')
    .describe('Holds agent.sock, the local API. Mode 0750: its group may speak to the agent.'),
  etcd: etcdSection().describe('What is known beforehand of the etcd to run.'),
  tls: section('a mapping with peer, server and client', {
    peer: tlsFiles().optional().describe('etcd towards members. With an https peerUrl, and only then.'),
    server: tlsFiles()
      .optional()
      .describe('etcd towards clients. With an https clientUrl or metricsUrl, and only then.'),
    client: tlsFiles()
      .optional()
      .describe('The agent as a client of etcd. With an https clientUrl or metricsUrl, and only then.'),
  })
    .prefault({})
    .describe('PEM files, read anew when they change.'),
  role: section('a mapping with file', {
    file: absolutePath('/etc/etcd-node-agent/role.json').describe(
      'The role document. While it is missing the role is unknown, which changes nothing.',
    ),
  }).describe('Where the role of this node comes from.'),
  upstream: upstreamSection().describe('Who hears of changes.'),
  metrics: section('a mapping with listen', {
    listen: listenAddress()
      .optional()
      .describe(
        "Serves the agent's metrics over TCP too, with the scheme of etcd.clientUrl. Not set: the socket alone.",
      ),
  })
    .prefault({})
    .describe("The agent's own metrics."),
  log: section('a mapping with level', {
    level: z
      .enum(['debug', 'info', 'warn', 'error'], wants('one of debug, info, warn, error'))
      .default('info')
      .describe('Least severe level that is written. A reload changes it.'),
  })
    .prefault({})
    .describe('The log on standard output.'),
  archives: section('a mapping with keep and minDays', {
    keep: whole(2, 1, 100).describe('How many archived data directories stay.'),
    minDays: whole(7, 1, 365).describe('None goes before this many days: evidence outlives a weekend.'),
  })
    .prefault({})
    .describe('Data directories that were moved aside.'),
  outbox: section('a mapping with maxBytes, maxFacts and keepDays', {
    maxBytes: size('64MiB', '1MiB', '1GiB').describe('Bound of the reports that wait on disk.'),
    maxFacts: whole(100_000, 100, 1_000_000).describe('Bound of the number of reports that wait on disk.'),
    keepDays: whole(7, 0, 90).describe('Acknowledged reports stay this long, for a restored receiver.'),
  })
    .prefault({})
    .describe('Reports that wait for upstream.'),
  timing: timingSection().describe('Rhythms. The defaults are for a LAN.'),
});

/** What the file says, with defaults, before fields that depend on each other are filled in. */
export type FileContent = z.output<typeof fileSchema>;

/** JSON schema (draft 2020-12) of the file, for editors. */
export function configSchemaJson(): Record<string, unknown> {
  const schema = z.toJSONSchema(fileSchema, { io: 'input' });
  return { ...schema, title: 'Configuration of etcd-node-agent' };
}

function etcdSection() {
  return section('a mapping with a binary and the URLs of etcd', {
    binary: absolutePath('/usr/bin/etcd').optional().describe('The etcd to run. Either this or binaries.'),
    binaries: z
      .record(
        textOf(/^\d{1,3}\.\d{1,3}\.\d{1,4}$/, 'a version such as 3.5.30'),
        absolutePath('/opt/etcd/3.5.30/etcd'),
        wants('a mapping of versions to paths'),
      )
      .optional()
      .describe('Version to path, for nodes with several. Either this or binary.'),
    version: textOf(/^\d{1,3}\.\d{1,3}\.\d{1,4}$/, "a version in quotes such as '3.5.30'")
      .optional()
      .describe('Which of binaries to run. Needed where there is more than one.'),
    name: label().optional().describe("etcd's --name. Default: node.id. Never changes."),
    peerUrl: dialledUrl('https://10.0.0.1:2380').describe('What other members dial.'),
    clientUrl: dialledUrl('https://10.0.0.1:2379').describe('What clients dial.'),
    listenPeerUrls: listenUrls('https://10.0.0.1:2380').describe('Where etcd listens for members. Default: peerUrl.'),
    listenClientUrls: listenUrls('https://10.0.0.1:2379').describe(
      'Where etcd listens for clients. Default: clientUrl.',
    ),
    metricsUrl: listenUrl('http://127.0.0.1:2381')
      .default('http://127.0.0.1:2381')
      .describe('Where etcd serves /health and /metrics; the agent probes there.'),
    flags: z
      .record(
        textOf(/^[a-z][a-z0-9-]{0,63}$/, 'a flag without dashes in front, such as quota-backend-bytes'),
        flagValue(),
        wants('a mapping of flags to values'),
      )
      .default({})
      .describe('Further flags of etcd, such as quota-backend-bytes. Those that the agent sets itself are refused.'),
    user: textOf(/^(?:[a-z_][a-z0-9_-]{0,31}|\d{1,9})$/, 'the name or the number of a user, in quotes')
      .optional()
      .describe("User that etcd runs as. Default: the agent's own."),
    oomScoreAdjust: whole(-900, -1000, 1000).describe("The kernel's oom_score_adj of etcd: the agent may die first."),
    stopGrace: duration('30s', '20s', '10m').describe('Time from TERM to KILL. An orderly end takes up to 15 s.'),
  });
}

function upstreamSection() {
  return z
    .discriminatedUnion(
      'kind',
      [
        section('a mapping with kind', { kind: z.literal('none') }),
        section('a mapping with kind and url', {
          kind: z.literal('webhook'),
          url: webhookUrl().describe('Where events are posted as CloudEvents.'),
          tls: section('a mapping with ca, cert and key', {
            ca: absolutePath('/etc/etcd-node-agent/upstream/ca.crt').optional(),
            cert: absolutePath('/etc/etcd-node-agent/upstream/tls.crt').optional(),
            key: absolutePath('/etc/etcd-node-agent/upstream/tls.key').optional(),
          })
            .optional()
            .describe("Trust other than the machine's, and an identity of our own."),
          tokenFile: absolutePath('/etc/etcd-node-agent/upstream/token')
            .optional()
            .describe('File with a bearer token. With https, or on loopback.'),
        }),
      ],
      { error: ({ input }) => `${kindShown(input)}; want kind: none, or kind: webhook with its url` },
    )
    .prefault({ kind: 'none' });
}

function kindShown(upstream: unknown): string {
  const isMapping = typeof upstream === 'object' && upstream !== null;
  return `is ${shown(isMapping && 'kind' in upstream ? upstream.kind : isMapping ? '' : upstream)}`;
}

function timingSection() {
  return section('a mapping of durations', {
    idleTurn: duration('10s', '500ms', '5m').describe('Rest between two turns when nothing wakes the agent.'),
    probeInterval: duration('2s', '200ms', '1m').describe('Between two liveness probes.'),
    probeDeadline: duration('3s', '200ms', '1m').describe('A probe that takes longer has failed.'),
    probeMisses: whole(5, 2, 100).describe('Failed probes in a row until etcd counts as unresponsive.'),
    statusInterval: duration('30s', '5s', '10m').describe(
      'Between two Status calls in quiet times. Often is dangerous: Status during a removal makes etcd panic.',
    ),
    listInterval: duration('60s', '2s', '10m').describe('Between two linearizable member lists in quiet times.'),
    reportFirst: duration('1s', '100ms', '1m').describe('Before a failed report is sent again; doubles.'),
    reportMax: duration('60s', '1s', '1h').describe("No report waits longer, a receiver's Retry-After aside."),
  }).prefault({});
}

function section<S extends z.core.$ZodLooseShape>(want: string, shape: S) {
  return z.strictObject(shape, wants(want));
}

function yesNo(standard: boolean) {
  return z.boolean(wants('true or false')).default(standard);
}

function tlsFiles() {
  return section('a mapping with cert, key and ca', {
    cert: absolutePath('/etc/etcd-node-agent/tls/peer.crt').describe('Certificate, with its intermediates.'),
    key: absolutePath('/etc/etcd-node-agent/tls/peer.key').describe('Its private key.'),
    ca: absolutePath('/etc/etcd-node-agent/tls/ca.crt').describe('Whom the holder trusts.'),
  });
}

function listenUrls(example: string) {
  const want = `a list of 1 to 8 URLs such as [${example}]`;
  return z.array(listenUrl(example), wants(want)).min(1, wants(want)).max(8, wants(want)).optional();
}

/** Numbers and truth values are taken as they are written; a number that JavaScript would round must stand in quotes. */
function flagValue() {
  const want = 'a text, a number that is not rounded, or true or false';
  return z
    .union([z.string(), z.boolean(), z.number()], wants(want))
    .refine(
      (value) => typeof value !== 'number' || Number.isSafeInteger(value) || !Number.isInteger(value),
      wants(want),
    )
    .refine((value) => printable(String(value)) === String(value) && String(value).length <= 4096, wants(want))
    .transform(String);
}
