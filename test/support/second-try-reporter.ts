import type { Reporter, TestCase } from 'vitest/node';

/** Names every test that passed only at its second try. */
class SecondTryReporter implements Reporter {
  onTestCaseResult(test: TestCase): void {
    const tries = test.diagnostic()?.retryCount ?? 0;
    if (tries > 0 && test.result().state === 'passed') process.stdout.write(`second try: ${test.fullName}\n`);
  }
}

// biome-ignore lint/style/noDefaultExport: vitest loads a reporter by its default export
export default SecondTryReporter;
