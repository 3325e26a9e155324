import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadClientConfig } from './client/client-config.ts';
import { ConfigProblem } from './layers/problem.ts';
import { loadServerConfig } from './server/server-config.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');
/** Stands in for a secret in every fixture; no error message may repeat the text. */
const SECRET_TEXT = '918273645';

const load = (file: string, env: NodeJS.ProcessEnv = {}): object =>
  file.endsWith('.toml') ? loadServerConfig({ file, env }) : loadClientConfig({ file, env });

const filesIn = (folder: string): string[] =>
  readdirSync(join(FIXTURES, folder)).filter((name) => /\.(toml|yml)$/.test(name));

describe('a valid config file is read as expected', () => {
  test.each(filesIn('valid').filter((name) => !name.startsWith('every-key-at')))('%s', (name) => {
    const file = join(FIXTURES, 'valid', name);
    const expected = readFileSync(file.replace(/\.\w+$/, '.expected.json'), 'utf8');
    expect(load(file, { SECURE_GROUP_KEY: 'from the environment' })).toMatchObject(JSON.parse(expected) as object);
  });

  test('a file with every default equals an empty config', () => {
    const file = join(FIXTURES, 'valid', 'every-key-at-its-default.toml');
    expect(loadServerConfig({ file, env: {} })).toEqual(loadServerConfig({ env: {} }));
  });
});

describe('an invalid config file is refused in one line with place, problem and remedy', () => {
  test.each(filesIn('invalid'))('%s', (name) => {
    const file = join(FIXTURES, 'invalid', name);
    const [code, message] = readFileSync(file, 'utf8').split('\n');
    const problem = refusalOf(() => load(file));
    expect(`# ${problem.message.replace(file, 'FILE')}`).toBe(message);
    expect(`# ${problem.code}`).toBe(code);
    expect(problem.message).not.toContain('\n');
    expect(JSON.stringify(problem)).not.toContain(SECRET_TEXT);
    expect(problem.message).not.toContain(SECRET_TEXT);
  });
});

const refusalOf = (run: () => unknown): ConfigProblem => {
  try {
    run();
  } catch (error) {
    if (error instanceof ConfigProblem) return error;
    throw error;
  }
  throw new Error('it was not refused');
};
