import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AgentProgram, foundTogether, LabNode, leaderOf } from '../../lab/node.ts';
import { killQuietly } from '../../lab/processes.ts';
import { CallProxy } from './call-proxy.ts';
import { type EtcdBinary, newestBinary } from './etcd-binaries.ts';
import { eventually } from './eventually.ts';
import { freePorts } from './ports.ts';
import { type CertificateWish, TestCa } from './test-ca.ts';

/** What a fleet is made of. */
export interface FleetOptions {
  /** How many nodes. Default 3: n1, n2, n3. */
  readonly size?: number;
  /** Default: the newest here. */
  readonly binary?: EtcdBinary;
  /** Where reports go. Default: nowhere. */
  readonly webhookUrl?: string;
  /** Peer, client and metrics side with TLS and client certificates, and a client certificate for an https webhook. Default false. */
  readonly tls?: boolean;
  /** Makes the certificates, where the test needs one authority for more than the fleet. Default: one of the fleet's own. */
  readonly ca?: TestCa;
  /** More of the configuration, as YAML at the top level. */
  readonly yaml?: string;
  /** More of the `etcd:` section, as lines of YAML without indentation. */
  readonly etcdYaml?: readonly string[];
  /** True: the client URL of each member leads through a proxy of the test, {@link FleetNode.proxy}; without TLS. Default false. */
  readonly proxied?: boolean;
}

/** Several nodes on loopback, each with an agent of its own; whoever makes it closes it. */
export class Fleet {
  readonly directory: string;
  readonly binary: EtcdBinary;
  readonly nodes: FleetNode[] = [];
  readonly ca: TestCa | undefined;
  readonly #options: FleetOptions;

  private constructor(directory: string, options: FleetOptions) {
    this.directory = directory;
    this.binary = options.binary ?? newestBinary();
    this.ca = (options.tls ?? false) ? (options.ca ?? new TestCa()) : undefined;
    this.#options = options;
  }

  /** Makes the nodes; starts nothing. */
  static async make(options: FleetOptions = {}): Promise<Fleet> {
    const fleet = new Fleet(mkdtempSync(join(tmpdir(), 'fleet-')), options);
    for (let number = 1; number <= (options.size ?? 3); number++) await fleet.addNode(`n${number}`);
    return fleet;
  }

  /** Makes the nodes, starts their agents, founds the cluster together, and waits until every etcd is ready. */
  static async founded(options: FleetOptions = {}): Promise<Fleet> {
    const fleet = await Fleet.make(options);
    try {
      await Promise.all(fleet.nodes.map((node) => node.startAgent()));
      await fleet.found();
      await Promise.all(fleet.nodes.map((node) => node.ready()));
      // Each must have read the list that has everybody's client address: a removal is proven by asking them.
      await Promise.all(fleet.nodes.map((node) => node.knowsEverybody(fleet.nodes.length)));
      return fleet;
    } catch (error) {
      const tail = fleet.lastLines();
      await fleet.close();
      throw new Error(`the fleet did not come up\n${tail}`, { cause: error });
    }
  }

  /** `ports`: peer, client, metrics; default: some that are free. `directory`: of a node that was there before. */
  async addNode(
    name: string,
    how: { readonly ports?: readonly number[]; readonly directory?: string } = {},
  ): Promise<FleetNode> {
    const ports = how.ports ?? (await freePorts(this.#options.proxied === true ? 4 : 3));
    const [, client = 0, , behind] = ports;
    const node = new FleetNode(
      how.directory ?? join(this.directory, name),
      name,
      ports,
      this.binary,
      this.#options,
      this.ca,
    );
    if (behind !== undefined) node.proxy = await CallProxy.start(client, behind);
    this.nodes.push(node);
    return node;
  }

  node(name: string): FleetNode {
    const node = this.nodes.find((one) => one.name === name);
    if (node === undefined) throw new Error(`there is no node ${name}`);
    return node;
  }

  /** All founders prepare, and each is given all lines. */
  async found(nodes: readonly FleetNode[] = this.nodes): Promise<readonly string[]> {
    return await foundTogether(nodes);
  }

  /** The node whose member leads, as the members themselves say. */
  async leader(): Promise<FleetNode> {
    return await leaderOf(this.nodes);
  }

  lastLines(count = 25): string {
    return this.nodes.map((node) => node.lastLines(count)).join('\n');
  }

  /** Ends agents and etcd, removes everything. */
  async close(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.close()));
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

/** One node of a fleet, with what only tests ask of it. */
export class FleetNode extends LabNode {
  /** In front of the client URL, in a fleet that is `proxied`. */
  proxy: CallProxy | undefined;
  /** The files of this node; undefined without TLS. */
  readonly tls: NodeTls | undefined;

  constructor(
    directory: string,
    name: string,
    ports: readonly number[],
    binary: EtcdBinary,
    options: FleetOptions,
    ca?: TestCa,
  ) {
    const { webhookUrl, etcdYaml } = options;
    const tls = ca === undefined ? undefined : nodeTls(join(directory, 'tls'), ca);
    const sections = tls === undefined ? [] : [`tls: ${JSON.stringify({ ...tls, upstream: undefined })}`];
    super({
      ...{ directory, name, ports, binary, webhookUrl, etcdYaml },
      agent: agentProgram,
      scheme: tls === undefined ? 'http' : 'https',
      directPort: ports[3],
      webhookTls: webhookUrl?.startsWith('https:') === true && tls !== undefined ? { ...tls.upstream } : undefined,
      yaml: [...sections, options.yaml ?? ''].join('\n'),
    });
    this.tls = tls;
  }

  writeRole(role: Record<string, unknown>): void {
    writeFileSync(this.roleFile, JSON.stringify({ nodeId: this.name, endpoints: [], ...role }));
  }

  /** How many times etcd was started here: the lives that are on disk. */
  lives(): number {
    const log = this.agentLog();
    return log.split('\n').filter((line) => line.includes('"msg":"etcd was started"')).length;
  }

  /** A line in the agent's log that says where a test is, for whoever reads it after a failure. */
  mark(text: string): void {
    appendFileSync(this.agentLogFile, `--- test: ${text}\n`);
  }

  override async close(): Promise<void> {
    await super.close();
    await this.proxy?.refuse();
  }

  /** With the node's client certificate, where there is one. */
  override async get(url: string): Promise<string> {
    const tls = this.tls?.client;
    if (tls === undefined) return await super.get(url);
    const files = { cert: readFileSync(tls.cert), key: readFileSync(tls.key), ca: readFileSync(tls.ca) };
    return await new Promise((resolve, reject) => {
      const request = httpsRequest(url, files);
      request.setTimeout(1_000, () => request.destroy(new Error(`no answer from ${url}`)));
      request.on('error', reject);
      request.on('response', (response) => {
        response.setEncoding('utf8');
        response.on('error', reject);
        response.toArray().then((chunks) => resolve(chunks.join('')), reject);
      });
      request.end();
    });
  }
}

/** Paths of one identity, as the configuration names them. */
export interface NodeTlsFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** All identities of one node. */
export interface NodeTls {
  readonly peer: NodeTlsFiles;
  readonly server: NodeTlsFiles;
  readonly client: NodeTlsFiles;
  readonly upstream: NodeTlsFiles;
}

function nodeTls(directory: string, ca: TestCa): NodeTls {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const files = (name: string): NodeTlsFiles => ({
    cert: join(directory, `${name}.crt`),
    key: join(directory, `${name}.key`),
    ca: join(directory, 'ca.crt'),
  });
  const all = { peer: files('peer'), server: files('server'), client: files('client'), upstream: files('upstream') };
  for (const [name, one] of Object.entries(all)) writeIdentity(one, ca, { commonName: name });
  return all;
}

/** Writes a new certificate with its key, and the authority: what was there is replaced, as an operator replaces it. */
export function writeIdentity(files: NodeTlsFiles, ca: TestCa, wish: CertificateWish = {}): void {
  const leaf = ca.issue({ ips: ['127.0.0.1'], dns: ['localhost'], ...wish });
  for (const [path, content, mode] of [
    [files.key, leaf.key, 0o600],
    [files.cert, leaf.cert, 0o644],
    [files.ca, ca.cert, 0o644],
  ] as const) {
    writeFileSync(`${path}.new`, content, { mode });
    renameSync(`${path}.new`, path);
  }
}

/** Kills agent, keeper and etcd of a node, as a machine that loses its power does. */
export async function killAll(node: FleetNode): Promise<void> {
  await node.endAgent('SIGKILL');
  for (const pid of node.processes()) killQuietly(pid);
  await eventually(() => node.processes().length === 0, { what: `the end of all processes of ${node.name}` });
}

/** The agent under test: the bundle that test/support/real-setup.ts has made, else from source. */
function agentProgram(): AgentProgram {
  const root = join(import.meta.dirname, '../..');
  const { ETCD_NODE_AGENT_BUNDLE: bundled, NODE_COMPILE_CACHE = '', PATH = '' } = process.env;
  const flags = ['--max-semi-space-size=1', '--max-old-space-size=96', '--v8-pool-size=1'];
  return {
    program: process.execPath,
    args: [...flags, bundled ?? join(root, 'src/cli/agent.ts')],
    environment: { PATH, NODE_COMPILE_CACHE, MALLOC_ARENA_MAX: '1' },
  };
}
