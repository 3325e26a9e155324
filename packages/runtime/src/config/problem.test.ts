import { CATALOGUE, Fault } from '@tunnel/errors';
import { expect, test } from 'vitest';
import { CONFIG_PROBLEM_CODES, ConfigProblem } from './problem.ts';

test.each(CONFIG_PROBLEM_CODES)('%s says the same words as the catalogue', (code) => {
  const names = [...CATALOGUE[code].text.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const values = Object.fromEntries(names.map((name) => [name, `<${name}>`]));
  expect(new ConfigProblem(code, values).message).toBe(new Fault(code, values).message);
});
