// Goal: a trace and a usage text are one entry, whole and bounded, whatever stands around them.
import { describe, expect, test } from 'vitest';
import { assemble, emptyAssembler, entriesOf, flush, maxBlockLines } from '../../src/etcd/log-assembler.ts';

const json = (message: string) => `{"level":"info","msg":"${message}"}`;
const kinds = (lines: readonly string[]) => entriesOf(lines).map(({ kind }) => kind);

describe('traces', () => {
  test('a panic with its goroutines is one entry; the line before it is another', () => {
    const lines = [
      json('a'),
      'panic: boom',
      '',
      'goroutine 1 [running]:',
      'main.f(0x1)',
      '\tf.go:1 +0x2',
      '',
      'goroutine 2:',
    ];
    const [, trace] = entriesOf(lines);
    expect(kinds(lines)).toEqual(['line', 'trace']);
    expect(trace).toMatchObject({ kind: 'trace', cause: 'panic', block: { first: 'panic: boom', totalLines: 7 } });
  });

  test('a JSON line of another goroutine in the middle does not cut it', () => {
    const lines = ['panic: boom', 'goroutine 1 [running]:', json('other'), 'main.f()', '\tf.go:1'];
    expect(kinds(lines)).toEqual(['line', 'trace']);
    expect(entriesOf(lines)[1]).toMatchObject({ block: { totalLines: 4 } });
  });

  test('a second panic within the first is its consequence, and the first names the cause', () => {
    const lines = ['panic: first', '\tpanic: second', '[signal SIGSEGV: segmentation violation]', 'panic: third'];
    expect(entriesOf(lines)).toHaveLength(1);
    expect(entriesOf(lines)[0]).toMatchObject({ cause: 'panic', block: { first: 'panic: first', totalLines: 4 } });
  });

  test.each([
    ['SIGQUIT: quit', 'signal'],
    ['fatal error: out of memory', 'fatalError'],
    ['unexpected fault address 0x7f', 'fault'],
    ['runtime/cgo: pthread_create failed: Resource temporarily unavailable', 'fatalError'],
  ])('%s begins one', (first, cause) => {
    expect(entriesOf([first, 'goroutine 1:'])).toMatchObject([{ kind: 'trace', cause }]);
  });

  test('of a dump of ten thousand lines the first are kept, all are counted', () => {
    const lines = ['SIGABRT: abort', ...Array.from({ length: 9_999 }, (_, index) => `frame ${index}`)];
    const [entry] = entriesOf(lines);
    expect(entry).toMatchObject({ block: { totalLines: 10_000 } });
    expect(entry?.kind === 'trace' && entry.block.lines).toHaveLength(maxBlockLines);
  });
});

test('a usage text is one entry', () => {
  const lines = ['flag provided but not defined: -x', 'Usage:', '', '  etcd [flags]', '    Start an etcd server.'];
  expect(entriesOf(lines)).toMatchObject([{ kind: 'usage', block: { first: lines[0], totalLines: 5 } }]);
});

test('text that begins nothing is an entry of its own', () => {
  expect(kinds(['some text', 'goroutine 3:', ''])).toEqual(['line', 'line', 'line']);
});

test('an unfinished trace is given at the end of the life, and a state is not changed by what follows', () => {
  const begun = assemble(emptyAssembler, 'panic: boom').state;
  assemble(begun, 'goroutine 1 [running]:');
  expect(flush(begun)).toMatchObject([{ block: { totalLines: 1 } }]);
});
