import { isAbsolute } from 'node:path';
import { AgentError, describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import { listHash, type RiskKind } from '../etcd/accepted-risk.ts';
import { formatId } from '../etcd/member.ts';
import { type DesiredRole, parseRole } from '../upstream/role.ts';
import { changesRole, editRole, type RoleChange, spentRisks } from '../upstream/role-edit.ts';
import { realRoleFile, replaceRoleFile } from '../upstream/role-file.ts';
import type { RoleKeeper } from '../upstream/role-keeper.ts';
import { effects, type RoleSourceName } from '../upstream/role-order.ts';
import { readRoleDocument } from '../upstream/role-source.ts';
import { sha256 } from './change/hearing.ts';
import type { Config } from './config.ts';
import type { Answer, RoleView } from './control.ts';
import type { Membership } from './membership.ts';
import { OrderRefusedError } from './order-refused.ts';
import type { Reports } from './reports.ts';
import { isSpentGrant } from './spent-grant.ts';
import type { AgentState } from './state/agent-state.ts';

/** What an operator can ask of the role, or tell it. */
export interface RoleControl {
  show(): RoleDetail;
  /** Makes the document in another file the role. Without `accept` only if nothing would change by it. */
  switchSource(request: RoleSwitchRequest): Promise<Answer>;
  /** Writes the role file, and lets it be read. */
  set(request: RoleSetRequest): Promise<Answer>;
}

export interface RoleSwitchRequest {
  /** Absolute. */
  readonly file: string;
  readonly accept: boolean;
  readonly dryRun: boolean;
}

export interface RoleSetRequest {
  readonly role: DesiredRole['role'];
  /** Undefined: as it is, or a new one where the role is granted anew. */
  readonly grantId: string | undefined;
  /** Undefined: as they are. */
  readonly endpoints: readonly string[] | undefined;
  /** Accepts that after the leaving of this member none more may fail; for the member list that is known now. */
  readonly acceptZeroTolerance: boolean;
  /** Lets the member leave where the change record cannot be written; for the member list that is known now. */
  readonly withoutRecord: boolean;
  readonly dryRun: boolean;
}

/** The role in force and where it comes from, with all that the document says. */
export interface RoleDetail extends RoleView {
  readonly nodeId: string;
  /** The file that is watched. */
  readonly file: string;
  /** When the role in force was accepted; null before the first. */
  readonly acceptedAt: string | null;
  /** True if its grant ended with a removal: it needs a new grant id. */
  readonly spent: boolean;
  /** Hex; empty if the document does not say. */
  readonly clusterId: string;
  readonly endpoints: readonly string[];
  /** Empty if the document does not say. */
  readonly etcdVersion: string;
  readonly accept: DesiredRole['accept'];
}

/** The role of a running agent; cli/role-link.ts. */
export interface RoleLinkPort {
  view(): RoleView;
  /** Throws an AgentError if the record of the role cannot be used. */
  keeper(): RoleKeeper;
  /** The file that is watched. */
  file(): string;
  /** From now on this file is watched; resolves when it was read. */
  watch(file: string): Promise<void>;
}

export interface RoleOrdersOptions {
  readonly link: RoleLinkPort;
  readonly config: () => Config;
  readonly state: AgentState;
  readonly membership: Pick<Membership, 'latest'>;
  readonly reports: Pick<Reports, 'report'>;
  readonly random: Random;
  readonly log: Log;
  /** What such a role would change in the cluster now, in sentences with numbers; for a dry run. Never throws for a silent cluster. */
  readonly preview: (role: DesiredRole) => Promise<readonly string[]>;
}

/** An operator's orders about the role. What is refused changes nothing. */
export class RoleOrders implements RoleControl {
  readonly #options: RoleOrdersOptions;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: RoleOrdersOptions) {
    this.#options = options;
  }

  show(): RoleDetail {
    const { link, config, state } = this.#options;
    const view = link.view();
    const accepted = view.known ? link.keeper().accepted : undefined;
    return {
      ...view,
      nodeId: config().node.id,
      file: link.file(),
      acceptedAt: accepted?.at ?? null,
      spent: view.known && isSpentGrant(view.grantId, state),
      clusterId: accepted?.role.clusterId ?? '',
      endpoints: accepted?.role.endpoints ?? [],
      etcdVersion: accepted?.role.etcdVersion ?? '',
      accept: accepted?.role.accept ?? [],
    };
  }

  async switchSource(request: RoleSwitchRequest): Promise<Answer> {
    return await this.#inTurn(() => this.#switchSource(request));
  }

  async set(request: RoleSetRequest): Promise<Answer> {
    return await this.#inTurn(() => this.#set(request));
  }

  async #switchSource({ file, accept, dryRun }: RoleSwitchRequest): Promise<Answer> {
    const { link, config } = this.#options;
    if (!isAbsolute(file)) throw new OrderRefusedError(`want an absolute path, found ${file}`);
    const keeper = link.keeper();
    const before = keeper.accepted;
    const document = await readRoleDocument(file);
    if (document.kind !== 'role') throw new OrderRefusedError(document.why, { hint: correctHint });
    const { role } = document;
    const source = fileSource(file);
    const verdict = keeper.judgeSwitch(role, source, { force: accept });
    if (verdict.kind === 'refuse') throw new OrderRefusedError(`${file}: ${verdict.why}`);
    const changes = before === undefined ? [`role ${role.role}, grant ${role.grantId}`] : effects(role, before.role);
    const { file: configFile, role: configured } = config();
    const lines = [
      `the role comes from the file ${file}`,
      ...(changes.length === 0 ? ['nothing else changes by that'] : changes),
      ...(configured.file === file
        ? []
        : [`set role.file in ${configFile} as well: at its next start the agent reads ${configured.file} again`]),
    ];
    if (dryRun) return { done: false, dryRun, lines: [...lines, ...(await this.#options.preview(role))] };
    const event = keeper.switchSource(role, source, { force: accept });
    if (event.kind !== 'accepted') throw new OrderRefusedError(`${file}: ${event.why}`);
    this.#audit('role switch-source', `${file}${changes.length === 0 ? '' : `: ${changes.join(', ')}`}`);
    await link.watch(file);
    return { done: true, dryRun, lines };
  }

  async #set(request: RoleSetRequest): Promise<Answer> {
    const { link } = this.#options;
    const file = link.file();
    const { text, base } = await this.#base(file);
    const granted = base === undefined || this.#isGrantedAnew(request, base);
    const change: RoleChange = {
      role: request.role,
      grantId: request.grantId ?? (granted ? this.#options.random.hex(8) : base.grantId),
      endpoints: request.endpoints,
      accept: [
        ...(request.acceptZeroTolerance ? [this.#risk('zero-tolerance')] : []),
        ...(request.withoutRecord ? [this.#risk('without-record')] : []),
      ],
    };
    if (base !== undefined && text !== '' && !changesRole(base, change)) {
      return { done: false, dryRun: request.dryRun, lines: [`${file} says that already`] };
    }
    const edited = editRole(text, base ?? this.#firstRole(change), change);
    const role = this.#judge(edited, file);
    const lines = [
      `${file}: ${base === undefined || text === '' ? 'a new file' : 'changed'}`,
      ...(base === undefined ? [`role ${role.role}, grant ${role.grantId}`] : effects(role, base)),
      ...(base === undefined ? [] : spentRisks(base, change)).map(
        ({ kind, memberId }) => `${kind} for member ${memberId} is accepted no more: it was of the grant before`,
      ),
      ...(role.generation > 0 ? [`generation ${role.generation}`] : []),
      ...(request.endpoints === undefined ? [] : [`endpoints ${role.endpoints.join(' ') || 'none'}`]),
    ];
    if (request.dryRun) return { done: false, dryRun: true, lines: [...lines, ...(await this.#options.preview(role))] };
    replaceRoleFile(file, edited);
    this.#audit('role set', lines.slice(1).join(', '));
    await link.watch(file);
    const { problem } = link.view();
    return {
      done: true,
      dryRun: false,
      lines: problem === '' ? lines : [...lines, `it is not in force yet: ${problem}`],
    };
  }

  /** What the file says now, which must be in force or may come into force; where there is no document, what is in force. */
  async #base(file: string): Promise<{ readonly text: string; readonly base: DesiredRole | undefined }> {
    const keeper = this.#options.link.keeper();
    const content = await realRoleFile.read(file);
    if (content.kind === 'unknown' && !content.missing) throw new OrderRefusedError(content.why, { hint: correctHint });
    const text = content.kind === 'text' ? content.text : '';
    const reading = parseRole(text, file);
    if (reading.kind === 'invalid') throw new OrderRefusedError(reading.problems.join('; '), { hint: correctHint });
    if (reading.kind === 'empty') return { text, base: keeper.accepted?.role };
    return { text, base: this.#judge(text, file) };
  }

  /** The document in `text`, if it would be accepted. Throws {@link OrderRefusedError}. */
  #judge(text: string, file: string): DesiredRole {
    const reading = parseRole(text, file);
    if (reading.kind === 'empty') throw new OrderRefusedError(`${file}:1:1: want a role document`);
    if (reading.kind === 'invalid') throw new OrderRefusedError(reading.problems.join('; '), { hint: correctHint });
    const verdict = this.#options.link.keeper().judge(reading.role, fileSource(file));
    if (verdict.kind === 'refuse') throw new OrderRefusedError(`${file}: ${verdict.why}`, { hint: correctHint });
    return reading.role;
  }

  #isGrantedAnew({ role }: RoleSetRequest, base: DesiredRole): boolean {
    if (role !== 'consensus-member') return false;
    return base.role !== 'consensus-member' || isSpentGrant(base.grantId, this.#options.state);
  }

  #firstRole({ role, grantId }: RoleChange): DesiredRole {
    const nodeId = this.#options.config().node.id;
    return { nodeId, role, grantId, epoch: 0, generation: 0, endpoints: [], accept: [] };
  }

  #risk(kind: RiskKind): DesiredRole['accept'][number] {
    const { state, membership } = this.#options;
    const identity = state.knownIdentity();
    if (identity === undefined) {
      throw new OrderRefusedError('this node is no member, so that there is nothing to accept', {
        hint: 'Give the order without it.',
      });
    }
    const members = membership.latest?.list.members ?? identity.lastMembers;
    return {
      kind,
      memberId: formatId(identity.memberId),
      listHash: listHash(identity.clusterId, members, sha256),
    };
  }

  /** The order is done already; a report that is not taken does not undo it. */
  #audit(command: string, detail: string): void {
    try {
      this.#options.reports.report({ kind: 'operator.command', command, detail });
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      this.#options.log.warn({ command, error: describeError(error) }, 'a report of a command was not accepted');
    }
  }

  /** One order at a time. */
  async #inTurn(work: () => Promise<Answer>): Promise<Answer> {
    const mine = this.#last.then(work);
    this.#last = mine.catch(() => {});
    return await mine;
  }
}

const correctHint = 'Correct the file; nothing was changed.';

function fileSource(file: string): RoleSourceName {
  return { kind: 'file', name: file };
}
