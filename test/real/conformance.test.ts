// Goal: the simulated cluster, on which the flows are tried thousands of times, answers as etcd does.
// Method: the cases of test/conformance on real processes; test/conformance/simulated.test.ts runs the same ones simulated.
import { describe } from 'vitest';
import { conformanceCases } from '../conformance/cases.ts';
import { fullRun, testVersions } from '../support/etcd-binaries.ts';
import { holdingEtcd, waitForShareMs } from '../support/etcd-budget.ts';
import { test } from '../support/real-etcd.ts';
import { RealLab } from './conformance-lab.ts';

describe.each(testVersions())('etcd $version', (binary) => {
  for (const { title, etcdAtOnce, alsoShort, run } of conformanceCases) {
    test.runIf(fullRun || etcdAtOnce < 3 || alsoShort === true)(
      title,
      { timeout: waitForShareMs },
      async ({ etcd }) => {
        await using _share = await holdingEtcd(etcdAtOnce);
        const cluster = await etcd({ binary, start: false, size: 1 });
        const lab = new RealLab(cluster);
        try {
          await run(lab);
        } finally {
          lab.close();
          await cluster.close();
        }
      },
    );
  }
});
