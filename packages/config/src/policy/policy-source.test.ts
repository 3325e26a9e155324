import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { loadClientConfig } from '../client/client-config.ts';
import { PolicySource, readPolicySource } from './policy-source.ts';

let folder: TemporaryDirectory;

beforeEach(async () => {
  folder = await temporaryDirectory();
});
afterEach(() => folder.close());

const sourceOf = (text: string): PolicySource => {
  const file = join(folder.path, 'rules.yml');
  writeFileSync(file, text);
  return readPolicySource({ file, shown: 'rules.yml', env: {}, home: '/home/me' });
};

/** Test schema with error messages that complete "must be", like the policy schema. */
const rule = z.strictObject(
  { deny: z.int({ error: 'a status' }).optional(), names: z.array(z.string({ error: 'a name' })).optional() },
  { error: (issue) => (issue.code === 'unrecognized_keys' ? 'unknown key `x`; did you mean `deny`?' : 'a table') },
);
const schema = z.union([z.array(rule, { error: 'a list' }), z.strictObject({ rules: z.array(rule) })], {
  error: 'a list of rules, or a table',
});

const refusal = (source: PolicySource, isShown = true): string => {
  const { error } = schema.safeParse(source.value);
  return source.refuseIssues(error?.issues ?? [], () => isShown).message;
};

describe('a policy in a file', () => {
  it.each([
    ['- deny: 400\n- deny: x\n', 'rules.yml:2: `[1].deny` must be a status, got "x"'],
    ['rules:\n  - deny: x\n', 'rules.yml:2: `rules[0].deny` must be a status, got "x"'],
    ['rules:\n  - dny: 400\n    deny: x\n', 'rules.yml:2: unknown key `rules[0].dny`; did you mean `deny`?'],
    ['just words', 'rules.yml:1: `policy` must be a list of rules, or a table, got "just words"'],
  ])('is refused with its line: %j', (text, message) => {
    expect(refusal(sourceOf(text))).toBe(message);
  });

  it('is refused without repeating a value that may be a secret', () => {
    expect(refusal(sourceOf('- deny: hunter2\n'), false)).toBe(
      'rules.yml:1: `[0].deny` must be a status, got a string',
    );
  });

  it('reports a single value in place of a list by its own key', () => {
    const source = sourceOf('- names: 5\n');
    const issue: z.core.$ZodIssue = { code: 'custom', path: [0, 'names', 0], message: 'a name', input: 5 };
    expect(source.refuseIssues([issue], () => true).message).toBe('rules.yml:1: `[0].names` must be a name, got 5');
  });

  it('resolves file names from its own folder, or from home', () => {
    const source = sourceOf('[]');
    expect([source.pathOf('a'), source.pathOf('~/b')]).toEqual([join(folder.path, 'a'), '/home/me/b']);
  });

  it('never prints its content', () => {
    const source = sourceOf('- hunter2\n');
    expect(inspect({ source }, { depth: 9 }) + JSON.stringify({ source })).not.toContain('hunter2');
  });

  it.each([
    ['nowhere', 'cannot read nowhere: no such file'],
    ['.', 'cannot read .: it is a directory'],
  ])('that cannot be read is named as it was given: %s', (shown, message) => {
    const read = () => readPolicySource({ file: join(folder.path, shown), shown, env: {}, home: '' });
    expect(read).toThrow(message);
  });
});

describe('a policy below a key of config.yml', () => {
  it('uses the lines and the folder of config.yml', () => {
    const file = join(folder.path, 'config.yml');
    writeFileSync(file, 'tunnels:\n  web:\n    proto: http\n    local_port: 1\n    policy:\n      - deny: x\n');
    const policy = loadClientConfig({ file, env: {} }).tunnels['web']?.policy;
    if (!(policy instanceof PolicySource)) throw new Error('it is no source');
    expect(refusal(policy)).toBe(`${file}:6: \`tunnels.web.policy[0].deny\` must be a status, got "x"`);
    expect(policy.pathOf('users')).toBe(join(folder.path, 'users'));
  });

  it('is a path if its value is text', () => {
    const file = join(folder.path, 'config.yml');
    writeFileSync(file, 'tunnels:\n  web: { proto: http, local_port: 1, policy: shop.yml }\n');
    expect(loadClientConfig({ file, env: {} }).tunnels['web']?.policy).toBe(join(folder.path, 'shop.yml'));
  });
});
