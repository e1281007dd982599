/** The agent without its core: configuration read, log open, API listening, one request served. Ends when its standard input does. */
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startApi } from '../../src/agent/api/server.ts';
import { AgentMetrics } from '../../src/agent/metrics.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { parseConfig } from '../../src/cli/config-file.ts';
import { createLog } from '../../src/cli/log.ts';
import { FakeControl } from '../../test/support/fake-control.ts';

const directory = mkdtempSync(join(tmpdir(), 'memory-'));
const config = parseConfig(
  `
node: { id: n1 }
dataRoot: ${directory}/data
stateDir: ${directory}/state
runDir: ${directory}/run
etcd: { binary: /usr/bin/etcd, peerUrl: 'http://127.0.0.1:2380', clientUrl: 'http://127.0.0.1:2379' }
role: { file: ${directory}/role.json }
`,
  'memory.yaml',
);
const { log } = createLog({ clock: systemClock, level: config.log.level, journal: false });
const control = new FakeControl();
const metrics = new AgentMetrics();
if (process.argv.includes('--scraped')) control.metrics = () => metrics.render(control.view);
const api = await startApi({ control, socketPath: `${config.runDir}/agent.sock`, clock: systemClock, log });
await get('/v1/status');
await get('/metrics');
console.log('ready');
process.stdin.resume();
process.stdin.once('end', async () => {
  await api.close();
  rmSync(directory, { recursive: true });
});

function get(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath: api.socketPath, path, agent: false }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`${path} was answered with ${response.statusCode}`));
      response.resume();
      response.once('end', resolve);
    });
    asked.once('error', reject);
    asked.end();
  });
}
