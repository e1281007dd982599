// Goal: a command changes in a role document what it is about, and nothing that a person wrote around it.
import { expect, test } from 'vitest';
import { type DesiredRole, parseRole } from '../../src/upstream/role.ts';
import { changesRole, editRole, type RoleChange, spentRisks } from '../../src/upstream/role-edit.ts';

const leaving: RoleChange = { role: 'leaving', grantId: 'g1', endpoints: undefined, accept: [] };
const risk = { kind: 'zero-tolerance', memberId: 'abc', listHash: '0123456789abcdef' };

test('comments, order and quotes of a YAML file stay', () => {
  const text = `# The role of n1.

nodeId: n1 # the machine in rack 3
# Ask Ada before you change this.
role: consensus-member   # since May
grantId: "2026-01"

endpoints:
  - https://10.0.0.2:2379 # old
generation: 7
`;
  expect(edit(text, { ...leaving, grantId: '2026-01' })).toBe(
    text.replace('consensus-member   # since', 'leaving # since').replace('generation: 7', 'generation: 8'),
  );
});

test('a file without a generation gets none; one with 0 counts from there', () => {
  expect(edit('nodeId: n1\nrole: consensus-member\ngrantId: g1\n', leaving)).toBe(
    'nodeId: n1\nrole: leaving\ngrantId: g1\n',
  );
  expect(edit('nodeId: n1\nrole: none\ngrantId: g1\ngeneration: 0\n', leaving)).toContain('generation: 1\n');
});

test('JSON stays JSON', () => {
  const text =
    '{\n    "nodeId": "n1",\n    "role": "consensus-member",\n    "grantId": "g1",\n    "generation": 3\n}\n';
  const edited = edit(text, { ...leaving, endpoints: ['http://127.0.0.1:1'], accept: [risk] });
  expect(JSON.parse(edited)).toEqual({
    nodeId: 'n1',
    role: 'leaving',
    grantId: 'g1',
    generation: 4,
    endpoints: ['http://127.0.0.1:1'],
    accept: [risk],
  });
  expect(edited).toMatch(/^\{\n {4}"nodeId": "n1",\n/);
});

test('an id of digits only, a long text and a strange one are read back as they were meant', () => {
  for (const grantId of ['12345', 'true', ' x', 'a: b # c', `${'long '.repeat(20)}x`]) {
    expect(role(edit('nodeId: n1\nrole: none\ngrantId: g0\n', { ...leaving, grantId })).grantId).toBe(grantId);
  }
});

test('a risk takes the place of the same one for an older list; others stay', () => {
  const other = { ...risk, memberId: 'def' };
  const old = { ...risk, listHash: 'ffffffffffffffff' };
  const text = `nodeId: n1\nrole: leaving\ngrantId: g1\naccept: # by Ada\n  - ${JSON.stringify(old)}\n  - ${JSON.stringify(other)} # ticket 7\n`;
  const edited = edit(text, { ...leaving, accept: [risk] });
  expect(role(edited).accept).toEqual([other, risk]);
  expect(edited).toContain('# ticket 7');
});

test('what was accepted for the member of one grant is gone with the next', () => {
  const text = `nodeId: n1\nrole: none\ngrantId: g0\naccept:\n  - ${JSON.stringify(risk)}\n`;
  expect(role(edit(text, leaving)).accept).toEqual([]);
  const later = { ...risk, memberId: 'def' };
  expect(role(edit(text, { ...leaving, accept: [later] })).accept).toEqual([later]);
  expect(spentRisks(role(text), leaving)).toEqual([risk]);
  // Over and over, as long as the document lives.
  let document = text;
  for (let round = 1; round <= 20; round++) {
    document = edit(document, { ...leaving, role: 'consensus-member', grantId: `g${round}` });
    const memberId = `a${round}`;
    document = edit(document, { ...leaving, grantId: `g${round}`, accept: [{ ...risk, memberId }] });
    expect(role(document).accept).toEqual([{ ...risk, memberId }]);
  }
});

test('where there is no document, it says all that was in force, and what was ordered', () => {
  const base: DesiredRole = {
    nodeId: 'n1',
    clusterId: '12345678',
    role: 'consensus-member',
    grantId: 'g1',
    epoch: 2,
    generation: 7,
    endpoints: ['http://127.0.0.1:1'],
    accept: [],
  };
  for (const text of ['', '# to be written\n']) {
    const edited = editRole(text, base, leaving);
    expect(role(edited)).toEqual({ ...base, role: 'leaving', generation: 8 });
    expect(edited).toContain(text);
  }
});

test('whether there is anything to change', () => {
  const base = role('nodeId: n1\nrole: leaving\ngrantId: g1\naccept: []\nendpoints: ["http://127.0.0.1:1"]\n');
  expect(changesRole(base, leaving)).toBe(false);
  expect(changesRole(base, { ...leaving, endpoints: ['http://127.0.0.1:1'] })).toBe(false);
  expect(changesRole(base, { ...leaving, endpoints: [] })).toBe(true);
  expect(changesRole(base, { ...leaving, grantId: 'g2' })).toBe(true);
  expect(changesRole(base, { ...leaving, role: 'none' })).toBe(true);
  expect(changesRole(base, { ...leaving, accept: [risk] })).toBe(true);
  expect(changesRole({ ...base, accept: [risk] }, { ...leaving, accept: [risk] })).toBe(false);
});

function edit(text: string, change: RoleChange): string {
  return editRole(text, role(text), change);
}

function role(text: string): DesiredRole {
  const reading = parseRole(text, 'role.yaml');
  if (reading.kind !== 'role') throw new Error(JSON.stringify(reading));
  return reading.role;
}
