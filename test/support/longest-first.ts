import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { orderOf } from './etcd-budget.ts';

/** Begins with the files that take longest, so that no long one is left over at the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(specifications: TestSpecification[]): Promise<TestSpecification[]> {
    const usual = await super.sort(specifications);
    return usual.sort((one, other) => orderOf(one.moduleId) - orderOf(other.moduleId));
  }
}
