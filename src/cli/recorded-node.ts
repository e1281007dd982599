import type { Config } from '../agent/config.ts';
import { layoutOf } from '../agent/layout.ts';
import { AgentState } from '../agent/state/agent-state.ts';
import { realDisk } from '../base/real-disk.ts';
import type { MachineProblem } from './config-machine.ts';

/**
 * Fields that are not what this node's member was recorded under. Everything is found by them: under another name a living etcd
 * would be unseen, and its data taken for lost. Empty where nothing is recorded, or where it cannot be read.
 */
export function recordedOtherwise(config: Config): readonly MachineProblem[] {
  const { stateDir, dataRoot, cluster, etcd, node } = config;
  const layout = layoutOf({ stateDir, dataRoot, clusterName: cluster.name, memberName: etcd.name });
  const state = new AgentState({ disk: realDisk, layout });
  const identity = state.identity.read();
  if (identity.kind !== 'ok') return [];
  const { nodeId, clusterName, name } = identity.value;
  const fields = [
    { path: 'node.id', is: node.id, was: nodeId },
    { path: 'cluster.name', is: cluster.name, was: clusterName },
    { path: 'etcd.name', is: etcd.name, was: name },
  ];
  const renamed = fields
    .filter(({ is, was }) => is !== was)
    .map(({ path, is, was }) => ({
      path,
      message: `is ${is}, and ${stateDir} holds the records of ${nodeId}, with ${was} here; want ${was}: names never change`,
    }));
  return [...renamed, ...leftBehind(state, dataRoot)];
}

/** A data root that was changed and not moved: the marker is where it was. */
function leftBehind(state: AgentState, dataRoot: string): readonly MachineProblem[] {
  const volume = state.volume.read();
  if (volume.kind !== 'ok' || volume.value.dataRoot === dataRoot) return [];
  const { marker, dataRoot: before } = volume.value;
  if (carries(dataRoot, marker) || !carries(before, marker)) return [];
  return [{ path: 'dataRoot', message: `is ${dataRoot}, and the data of this node is in ${before}; want ${before}` }];
}

function carries(dataRoot: string, marker: string): boolean {
  const { volumeMarker } = layoutOf({ stateDir: '', dataRoot, clusterName: '', memberName: '' });
  try {
    const found = realDisk.read(volumeMarker);
    return found !== undefined && new TextDecoder().decode(found).trim() === marker;
  } catch {
    return false;
  }
}
