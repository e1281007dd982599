import { Command } from 'commander';
import { type CommandContext, type CommonOptions, outputOption } from '../command-line.ts';
import { configFileOf } from '../config.ts';

/** `config check` and `config schema`: for a file, without an agent. */
export function addConfig(program: Command, context: CommandContext): void {
  const command = new Command('config').description('checks a configuration file, or prints the schema of it');
  command.addCommand(checkCommand(context));
  command.addCommand(schemaCommand(context));
  program.addCommand(command);
}

function checkCommand(context: CommandContext): Command {
  const command = outputOption(new Command('check'))
    .description('names everything that is wrong with a configuration file; changes nothing')
    .argument('[file]', 'the file (default: ETCD_NODE_AGENT_CONFIG, then /etc/etcd-node-agent/config.yaml)')
    .option('--file-only', 'do not look at this machine: binaries, TLS files, mount points');
  command.action(async (named: string | undefined, options: CheckOptions) => {
    const { checkConfig } = await import('../check-config.ts');
    const file = configFileOf(named, context.io.environment);
    const { nodeId, machine } = checkConfig(file, options.fileOnly !== true);
    const view = { ok: true, file, nodeId, lookedAtMachine: machine };
    const how = machine ? '' : ' (the machine was not looked at)';
    context.print(options, view, () => `${file}: ok, node ${nodeId}${how}\n`);
  });
  return command;
}

type CheckOptions = CommonOptions & { readonly fileOnly?: boolean };

function schemaCommand(context: CommandContext): Command {
  const command = new Command('schema').description('prints the JSON schema of the configuration file, for editors');
  command.action(async () => {
    const { configSchemaJson } = await import('../config-schema.ts');
    context.io.out(`${JSON.stringify(configSchemaJson(), null, 2)}\n`);
  });
  return command;
}
