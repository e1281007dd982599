import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseRole, roleJsonSchema } from '../../src/upstream/role.ts';

const good = `# the role of n1
nodeId: n1
clusterId: cdf818194e3a8c32
role: consensus-member
grantId: g-1
epoch: 2
generation: 7
endpoints: ["https://10.0.0.1:2379"]
etcdVersion: 3.5.30
accept:
  - kind: zero-tolerance
    memberId: 8e9e05c52164694d
    listHash: 0badc0de
`;

const problems = (text: string) => {
  const reading = parseRole(text, 'role.yaml');
  if (reading.kind !== 'invalid') throw new Error(`it was taken as ${reading.kind}`);
  return reading.problems;
};

describe('a role document', () => {
  test('in YAML and in JSON means the same', () => {
    const yaml = parseRole(good, 'role.yaml');
    if (yaml.kind !== 'role') throw new Error(JSON.stringify(yaml));
    expect(yaml.role).toEqual({
      nodeId: 'n1',
      clusterId: 'cdf818194e3a8c32',
      role: 'consensus-member',
      grantId: 'g-1',
      epoch: 2,
      generation: 7,
      endpoints: ['https://10.0.0.1:2379'],
      etcdVersion: '3.5.30',
      accept: [{ kind: 'zero-tolerance', memberId: '8e9e05c52164694d', listHash: '0badc0de' }],
    });
    expect(parseRole(JSON.stringify(yaml.role, null, 2), 'role.json')).toEqual(yaml);
  });

  test('needs only node, role and grant', () => {
    expect(parseRole('{nodeId: n1, role: none, grantId: g}', 'r')).toMatchObject({
      kind: 'role',
      role: { epoch: 0, accept: [] },
    });
  });

  test('that is empty is no role, and never "none"', () => {
    for (const text of ['', '\n\n', '# only a comment\n', '---\n', '~', 'null', '""']) {
      expect(parseRole(text, 'role.yaml'), JSON.stringify(text)).toEqual({ kind: 'empty' });
    }
  });

  test('K29 with an unknown field is refused, and the field named with its place', () => {
    expect(problems(`${good}learner: true\n`)).toEqual([
      expect.stringMatching(/^role\.yaml:14:\d+: learner is no field of a role document; known are: nodeId, /),
    ]);
    expect(problems(good.replace('listHash', 'listhash'))).toEqual([
      expect.stringMatching(/^role\.yaml:11:5: accept\.0\.listHash: is missing; want a text$/),
      expect.stringMatching(/^role\.yaml:13:\d+: accept\.0\.listhash is no field/),
    ]);
  });

  test('K08 with a field that stands twice is refused', () => {
    expect(problems(`${good}role: none\n`)).toEqual(['role.yaml:14:1: role stands twice; want each field once']);
  });

  const mistakes: readonly [string, string, string, string][] = [
    [
      'another role',
      'role: consensus-member',
      'role: voter',
      'role.yaml:4:7: role: want one of consensus-member, leaving, none',
    ],
    [
      'several roles',
      'role: consensus-member',
      'role: [none]',
      'role.yaml:4:7: role: want one of consensus-member, leaving, none',
    ],
    [
      'an id that YAML takes for a number',
      'cdf818194e3a8c32',
      '12345',
      'role.yaml:3:12: clusterId: want a text, found a number; put it in quotes',
    ],
    [
      'an id that is not hex',
      'cdf818194e3a8c32',
      'xyz',
      'role.yaml:3:12: clusterId: want a cluster id in hex, as etcdctl shows it',
    ],
    [
      'an endpoint that is no URL',
      'https://10.0.0.1:2379',
      '10.0.0.1:2379',
      'role.yaml:8:13: endpoints.0: want a client URL such as https://10.0.0.1:2379',
    ],
    ['a broken generation', 'generation: 7', 'generation: 1.5', 'role.yaml:7:13: generation: want a whole number'],
    ['a negative epoch', 'epoch: 2', 'epoch: -1', 'role.yaml:6:8: epoch: '],
    ['no grant', 'grantId: g-1\n', '', 'role.yaml:2:1: grantId: is missing; want a text'],
    ['an alias', 'grantId: g-1', 'grantId: &a g-1\nextra: *a', 'role.yaml:6:8: want plain values, found a YAML alias'],
    ['a tag', 'grantId: g-1', 'grantId: !!js/function x', 'role.yaml:5:10: Unresolved tag'],
    ['a second document', 'accept:', '---\naccept:', 'role.yaml:10:1: want one document, found a second one'],
    ['half a document', '0badc0de', '"0bad', 'role.yaml:14:1: '],
  ];
  for (const [what, from, to, expected] of mistakes) {
    test(`with ${what} is refused with file, line and column`, () => {
      expect(problems(good.replace(from, to)).join('\n')).toContain(expected);
    });
  }

  test('that is too large or binary is refused', () => {
    expect(problems(`# ${'x'.repeat(70_000)}`)).toEqual(['role.yaml:1:1: want at most 65536 bytes']);
    expect(problems('nodeId: n1\0')).toEqual(['role.yaml:1:1: want text, found NUL bytes']);
  });

  test('never makes the parser throw, whatever stands in it', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.json(), mutated()), (text) => {
        expect(['role', 'empty', 'invalid']).toContain(parseRole(text, 'r').kind);
      }),
      { numRuns: 2_000 },
    );
  });

  test('has a JSON schema that refuses unknown fields', () => {
    expect(roleJsonSchema()).toMatchObject({
      type: 'object',
      additionalProperties: false,
      required: ['nodeId', 'role', 'grantId'],
      properties: { role: { enum: ['consensus-member', 'leaving', 'none'] } },
    });
  });
});

/** The good document with one stretch replaced. */
function mutated(): fc.Arbitrary<string> {
  return fc
    .tuple(fc.nat(good.length), fc.nat(20), fc.string({ unit: 'binary', maxLength: 6 }))
    .map(([at, length, text]) => good.slice(0, at) + text + good.slice(at + length));
}
