import { resolve } from 'node:path';
import { Argument, Command } from 'commander';
import type { Answer } from '../../agent/control.ts';
import type { RoleDetail, RoleSetRequest, RoleSwitchRequest } from '../../agent/role-orders.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { roleDetailText } from '../role-view.ts';
import { answerText } from '../views.ts';

/** `role`: what this node should be, and where that is said. */
export function addRole(program: Command, context: CommandContext): void {
  const command = new Command('role').description(
    'shows the role of this node, changes it, or takes it from another file',
  );
  command.addCommand(showCommand(context));
  command.addCommand(setCommand(context));
  command.addCommand(switchCommand(context));
  program.addCommand(command);
}

function showCommand(context: CommandContext): Command {
  const command = agentCommand('show', 'shows the role in force, its source, and why a newer one is not');
  command.action(async (options: CommonOptions) => {
    const client = await context.client(options);
    context.print(options, await client.get<RoleDetail>('/v1/role'), roleDetailText);
  });
  return command;
}

function setCommand(context: CommandContext): Command {
  const command = agentCommand('set', 'writes the role file; a new grant is made where the role is granted anew')
    .addArgument(new Argument('<role>', 'what the node should be').choices(['consensus-member', 'leaving', 'none']))
    .option('--grant <id>', 'the grant id (default: as it is, or a new one)')
    .option('--endpoint <url...>', 'client URLs of voters to ask, in the place of those in the file')
    .option('--accept-zero-tolerance', 'this member may leave although after that not one more voter may fail')
    .option('--without-record', 'this member may leave although the change record cannot be written')
    .option('--dry-run', 'say what would be done, do nothing');
  command.action(async (role: RoleSetRequest['role'], options: SetOptions) => {
    const client = await context.client(options);
    const request: RoleSetRequest = {
      role,
      grantId: options.grant,
      endpoints: options.endpoint,
      acceptZeroTolerance: options.acceptZeroTolerance === true,
      withoutRecord: options.withoutRecord === true,
      dryRun: options.dryRun === true,
    };
    context.print(options, await client.post<Answer>('/v1/role/set', request), answerText);
  });
  return command;
}

interface SetOptions extends CommonOptions {
  readonly grant?: string;
  readonly endpoint?: readonly string[];
  readonly acceptZeroTolerance?: boolean;
  readonly withoutRecord?: boolean;
  readonly dryRun?: boolean;
}

function switchCommand(context: CommandContext): Command {
  const command = agentCommand('switch-source', 'takes the role from another file, or anew where its record was lost')
    .argument('<file>', 'the role document')
    .option('--accept', 'also if the role changes by that')
    .option('--dry-run', 'say what would be done, do nothing');
  command.action(async (file: string, options: SwitchOptions) => {
    const client = await context.client(options);
    const { accept, dryRun } = options;
    const request: RoleSwitchRequest = { file: resolve(file), accept: accept === true, dryRun: dryRun === true };
    context.print(options, await client.post<Answer>('/v1/role/switch-source', request), answerText);
  });
  return command;
}

type SwitchOptions = CommonOptions & { readonly accept?: boolean; readonly dryRun?: boolean };
