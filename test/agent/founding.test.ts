import { describe, expect, test } from 'vitest';
import {
  FoundersRefusedError,
  founderLine,
  initialCluster,
  ownFounder,
  parseFounders,
  tokenInput,
} from '../../src/agent/founding.ts';

const n1 = { name: 'n1', peerUrl: 'http://127.0.0.1:2380', nonce: '1'.repeat(32) };
const n2 = { name: 'n2', peerUrl: 'http://127.0.0.2:2380', nonce: '2'.repeat(32) };

describe('the list of founders', () => {
  test('is the same for every founder, whatever the order and the comments', () => {
    const one = parseFounders([founderLine(n2), '', '# ours', `  ${founderLine(n1)} `]);
    const other = parseFounders([founderLine(n1), founderLine(n2)]);
    expect(tokenInput(one)).toBe(tokenInput(other));
    expect(initialCluster(one)).toBe('n1=http://127.0.0.1:2380,n2=http://127.0.0.2:2380');
  });

  test.each([
    ['an empty list', []],
    ['a line of two words', ['n1 http://127.0.0.1:2380']],
    ['a short nonce', ['n1 http://127.0.0.1:2380 abc']],
    ['X13 a scheme that is not http', [`n1 file:///etc/passwd:1 ${n1.nonce}`]],
    ['X13 credentials in the URL', [`n1 http://u@127.0.0.1:2380 ${n1.nonce}`]],
    ['a URL that would split etcd’s list', [`n1 http://a,b:2380 ${n1.nonce}`]],
    ['two founders of one name', [founderLine(n1), founderLine({ ...n2, name: 'n1' })]],
    ['two founders at one URL', [founderLine(n1), founderLine({ ...n2, peerUrl: n1.peerUrl })]],
    ['two founders with one nonce', [founderLine(n1), founderLine({ ...n2, nonce: n1.nonce })]],
  ])('is refused: %s', (_title, lines) => {
    expect(() => parseFounders(lines)).toThrow(FoundersRefusedError);
  });

  test('a founder that lost its disk misses its own line', () => {
    const founders = parseFounders([founderLine(n1), founderLine(n2)]);
    expect(ownFounder(founders, n1)).toEqual(n1);
    expect(() => ownFounder(founders, { ...n1, nonce: '3'.repeat(32) })).toThrow(/another nonce/);
  });

  test('a founder whose configuration differs from its line is refused', () => {
    const founders = parseFounders([founderLine(n1)]);
    expect(() => ownFounder(founders, { ...n1, peerUrl: 'http://127.0.0.9:2380' })).toThrow(/configuration/);
  });
});
