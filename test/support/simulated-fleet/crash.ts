import type { CrashPoint, EffectName } from '../../../src/agent/effects.ts';

/** One passing of one crash point in one run. */
export interface Passed extends CrashPoint {
  readonly node: string;
  /** Which passing of this effect on this node, from 1. */
  readonly occurrence: number;
}

/** Where an agent is to be killed. `within`: while the effect is at work, its write half done or its call on its way. */
export interface CrashPlan {
  readonly node: string;
  readonly effect: EffectName;
  readonly moment: 'before' | 'within' | 'after';
  readonly occurrence: number;
  readonly how: 'kill' | 'powerLoss';
  /** `within`: so many steps of the disk, or ms of a call, after its begin. */
  readonly depth: number;
}

/** What a hook tells the node to do at a crash point. */
export type CrashOrder = 'die' | { readonly inSteps: number } | undefined;

/** @pure What a plan says at this passing. */
export function orderAt(plan: CrashPlan, passed: Passed): CrashOrder {
  const isIt = plan.node === passed.node && plan.effect === passed.effect && plan.occurrence === passed.occurrence;
  if (!isIt) return undefined;
  if (plan.moment === 'within') return passed.moment === 'before' ? { inSteps: plan.depth } : 'die';
  return plan.moment === passed.moment ? 'die' : undefined;
}

/** @pure `n4 change.remove#2 within, powerLoss` */
export function describeCrash({ node, effect, moment, occurrence, how, depth }: CrashPlan): string {
  return `${node} ${effect}#${occurrence} ${moment}${moment === 'within' ? ` ${depth}` : ''}, ${how}`;
}
