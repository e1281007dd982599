/** @pure file: every blocker in words, with its remedy. */

import { formatId } from '../etcd/member.ts';
import type { Blocker } from './step.ts';

/** A blocker as an operator reads it. */
export interface BlockerText {
  readonly because: string;
  readonly hint: string;
}

/** @pure What stands in the way, and what helps. */
export function describeBlocker(by: Blocker): BlockerText {
  switch (by.kind) {
    case 'superviseOnly':
      return {
        because: `the agent's own records cannot be trusted (${by.because}); etcd is run, membership is not touched`,
        hint:
          by.lost === true
            ? 'Mount or restore the state directory and start the agent anew. If it is gone for good, `etcd-node-agent adopt` writes the records anew.'
            : 'See docs/runbook.md, "state that cannot be read".',
      };
    case 'volumeMissing':
      return {
        because: `the data volume is not at ${by.path}: its marker is not there`,
        hint: 'Mount the volume; the agent looks every second. If it is lost for good, see docs/runbook.md, "the data volume is missing".',
      };
    case 'volumeUnknown':
      return { because: by.because, hint: 'See docs/runbook.md, "state that cannot be read".' };
    case 'stoppedByOperator':
      return {
        because: `etcd was stopped and stays stopped: ${by.because}`,
        hint: '`etcd-node-agent start` starts it again.',
      };
    case 'shuttingDown':
      return {
        because: `${by.because}; etcd is started again after the next boot`,
        hint: 'If the machine stays up after all: `etcd-node-agent start`.',
      };
    case 'intentUnknown':
      return {
        because: `whether etcd is to run cannot be read: ${by.because}`,
        hint: '`etcd-node-agent start` or `stop` writes it anew.',
      };
    case 'held':
      return { because: `etcd is not started again (${by.class}): ${by.because}`, hint: holdHint(by.until) };
    case 'removedByOthers':
      if (by.retired === true) {
        return {
          because: 'the cluster of this node has ended with its last member',
          hint: '`etcd-node-agent found` founds another one, `join --endpoint URL` joins one.',
        };
      }
      return {
        because: `member ${by.memberId === undefined ? '' : `${formatId(by.memberId)} `}of this node was removed from its cluster`,
        hint: 'Nothing is to be done. To make the node a member again: `etcd-node-agent join`, or a new `grantId` in its role document.',
      };
    case 'removalUnconfirmed':
      return {
        because: `somebody says that this member was removed, and it is not proven: ${by.because}`,
        hint: 'The agent asks again by itself. If you know: `etcd-node-agent confirm-removed ID` or `reject-removal ID`. See docs/runbook.md, "a removal that cannot be confirmed".',
      };
    case 'dataNotOurs':
      return {
        because: `the data directory holds member ${formatId(by.memberId)} of cluster ${formatId(by.clusterId)}, which this agent has not recorded as its own`,
        hint: '`etcd-node-agent adopt --dry-run` shows what it is, `adopt` takes it over. To start fresh, move it away.',
      };
    case 'dataOfAnotherMember':
      return {
        because: `the data directory holds member ${formatId(by.memberId)} of cluster ${formatId(by.clusterId)}, and this node is another member`,
        hint: 'It is not started and not touched. See docs/runbook.md, "data of another member".',
      };
    case 'dataBroken':
      return {
        because: `the data directory cannot be used: ${by.because}`,
        hint: 'It is kept as it is. Move it away, or restore it.',
      };
    case 'dataUnknown':
      return {
        because: `the data directory cannot be read: ${by.because}`,
        hint: 'Repair its permissions or the file system; unreadable is not empty.',
      };
    case 'diskLost':
      return {
        because: `member ${formatId(by.memberId)} ran on this node and its data is gone; an id without memory must not vote`,
        hint: `Put the right disk back, or order \`etcd-node-agent replace ${formatId(by.memberId)}\`. See docs/runbook.md, "a lost disk".`,
      };
    case 'logRegressed':
      return {
        because: `the data of member ${formatId(by.memberId)} is older than the member was, so it was put back from a copy: ${by.because}`,
        hint: `Put the newest data back, or order \`etcd-node-agent replace ${formatId(by.memberId)}\`. If its writes since then may be lost: \`etcd-node-agent start --accept-log-regression ${formatId(by.memberId)}\`. See docs/runbook.md, "a log that went back".`,
      };
    case 'processUnknown':
      return { because: by.because, hint: 'Nothing is started or signalled until it is clear whose process this is.' };
    case 'preflight':
      return { because: by.problems.join('; '), hint: by.hint };
    case 'roleUnknown':
      return {
        because: `the role of this node is unknown: ${by.because}`,
        hint: 'Write (or correct) the role document, or run `join --endpoint URL`, `found` or `adopt`.',
      };
    case 'notAMember':
      return {
        because: 'the role asks for a consensus member, and this node is none',
        hint: 'Name voters to join in `endpoints` of the role document, found a cluster (`etcd-node-agent found`), or take over existing data (`adopt`).',
      };
    case 'paused':
      return {
        because: `an operator has paused membership changes, so ${by.what} waits`,
        hint: '`etcd-node-agent resume` ends the pause.',
      };
    case 'clusterSilent':
    case 'changeRefused':
      return { because: by.because, hint: by.hint };
    case 'oldMemberListed':
      return {
        because: `the cluster still lists member ${formatId(by.memberId)}, which this node was`,
        hint: 'The agent asks again by itself. If it stays: `etcd-node-agent members evict ID` on another member.',
      };
    case 'joinExpired':
      return {
        because: `etcd of this node's learner did not start in time, so the learner was taken out again; the next join begins in ${Math.ceil(by.inMs / 60_000)} min`,
        hint: 'Look why etcd did not start (`etcd-node-agent logs`, `etcd-node-agent why`). `etcd-node-agent leave`, then `join`, begins at once.',
      };
    case 'spaceForJoin':
      return {
        because: `joining needs ${megabytes(by.neededBytes)} free on the data volume, and ${by.freeBytes === undefined ? 'how much is free cannot be told' : `${megabytes(by.freeBytes)} are`}`,
        hint: "Free space, or use a larger volume: 1 GiB, or two and a half times the leader's database if that is more.",
      };
  }
}

function holdHint(until: string): string {
  switch (until) {
    case 'operator':
      return 'Find the cause (`etcd-node-agent logs`), then `etcd-node-agent start`. See docs/exit-classes.md.';
    case 'configChange':
      return 'It is tried again as soon as the configuration or one of the files it names changes.';
    case 'versionChange':
      return 'It is tried again as soon as the configuration names another etcd, or its binary changes.';
    default:
      return `It waits for: ${until}. See docs/exit-classes.md.`;
  }
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1024 / 1024)} MiB`;
}
