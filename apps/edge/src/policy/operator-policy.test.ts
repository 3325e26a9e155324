import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readOperatorPolicy } from './operator-policy.ts';
import { isPassword } from './password-hash.ts';

let dir: TemporaryDirectory;

beforeEach(async () => {
  dir = await temporaryDirectory();
});

afterEach(() => dir.close());

const write = (text: string, name = 'rules.yml'): string => {
  const file = join(dir.path, name);
  writeFileSync(file, text);
  return file;
};

it('without a configured file there is no operator policy', () => {
  expect(readOperatorPolicy('')).toBeNull();
});

it.each(['- deny: true\n', 'rules:\n  - deny: true\n'])(
  'the file holds a list of rules, or a list under the key rules: %j',
  (text) => {
    expect(readOperatorPolicy(write(text))).toMatchObject({ login: null, rules: [{ deny: 403 }] });
  },
);

it('secrets are read relative to the operator’s file, and passwords are hashed', async () => {
  write('a-token-of-this-company\n', 'token');
  const policy = readOperatorPolicy(
    write('- auth:\n    basic: { users: { ann: open } }\n    tokens: [{ name: ci, token_file: token }]\n'),
  );
  const [rule] = policy?.rules ?? [];
  const auth = rule !== undefined && 'auth' in rule ? rule.auth : undefined;
  const line = auth?.basic?.users['ann'] ?? '';
  expect(await isPassword('open', line)).toBe(true);
  const sha256 = createHash('sha256').update('a-token-of-this-company').digest('hex');
  expect(auth?.tokens).toEqual([{ name: 'ci', sha256 }]);
});

it.each([
  ['login: { provider: company }\nrules:\n  - deny: true\n', 'rules.yml:1: '],
  ['- deny: true\n- route: api\n', 'rules.yml:2: '],
  ['- auth:\n    login: { anyone: true }\n', 'rules.yml:2: '],
  ['- deny: 200\n', 'rules.yml:1: '],
  ['- denied: true\n', 'rules.yml:1: '],
  ['- deny: [\n', 'rules.yml:'],
  ['- auth: { tokens: [{ name: ci, token: s3cret }] }\n', 'rules.yml:1: '],
])('an invalid operator policy is refused with its line number, without revealing a secret: %j', (text, words) => {
  const file = write(text);
  expect(() => readOperatorPolicy(file)).toThrow(words);
  expect(() => readOperatorPolicy(file)).not.toThrow('s3cret');
});
