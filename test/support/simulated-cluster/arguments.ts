/** etcd's command line, as far as the simulation needs it. */

/** How a simulated etcd is started. */
export interface StartArguments {
  readonly name: string;
  /** Advertised to the others. */
  readonly peerUrls: readonly string[];
  /** Where it answers them; what it advertises if nothing is said. */
  readonly listenPeerUrls: readonly string[];
  readonly clientUrls: readonly string[];
  readonly initial: readonly { readonly name: string; readonly peerUrl: string }[];
  readonly state: 'new' | 'existing';
  readonly token: string;
  readonly strict: boolean;
  readonly forceNewCluster: boolean;
  readonly maxLearners: number;
}

/** Reads `--flag=value`, `--flag value` and `--flag`. What the simulation does not know is ignored. */
export function parseArguments(args: readonly string[]): StartArguments {
  const flags = new Map<string, string>();
  for (let index = 0; index < args.length; index++) {
    const match = /^--([a-z-]+)(?:=(.*))?$/.exec(args[index] ?? '');
    if (match === null) continue;
    const next = args[index + 1];
    const separate = match[2] === undefined && next !== undefined && !next.startsWith('--');
    flags.set(match[1] ?? '', match[2] ?? (separate ? next : 'true'));
    if (separate) index++;
  }
  const listOf = (name: string) => (flags.get(name) ?? '').split(',').filter((item) => item !== '');
  const peerUrls = listOf('initial-advertise-peer-urls');
  const listenPeerUrls = listOf('listen-peer-urls');
  const isSet = (name: string, otherwise: boolean) => (flags.get(name) ?? String(otherwise)) === 'true';
  return {
    name: flags.get('name') ?? 'default',
    peerUrls,
    listenPeerUrls: listenPeerUrls.length > 0 ? listenPeerUrls : peerUrls,
    clientUrls: listOf('advertise-client-urls'),
    initial: listOf('initial-cluster').map((item) => {
      const at = item.indexOf('=');
      return { name: item.slice(0, at), peerUrl: item.slice(at + 1) };
    }),
    state: flags.get('initial-cluster-state') === 'existing' ? 'existing' : 'new',
    token: flags.get('initial-cluster-token') ?? 'etcd-cluster',
    strict: isSet('strict-reconfig-check', true),
    forceNewCluster: isSet('force-new-cluster', false),
    maxLearners: Number(flags.get('max-learners') ?? 1),
  };
}
