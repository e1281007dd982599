import type { Stage } from './stage.ts';

/** Where everything lies that goes on after the demo, and how it is ended. */
export function keptText({ directory, nodes, reportsUrl }: Stage): string {
  const [first] = nodes;
  const socket = first?.socket ?? '';
  return [
    '',
    `It runs on, in ${directory}:`,
    ...nodes.map(({ name, clientUrl }) => `  ${name}  etcd's clients: ${clientUrl}`),
    '  NODE/agent.yaml                            configuration',
    '  NODE/run/agent.sock                        local API',
    '  NODE/agent.log                             log of the agent',
    '  NODE/data/default/NODE/etcd/lives/*/log    logs of etcd',
    `  ${reportsUrl}    all reports, as JSON`,
    '',
    `Ask an agent:  scripts/etcd-node-agent status --socket ${socket}`,
    `End it:        npm start -- --stop ${directory}`,
  ].join('\n');
}
