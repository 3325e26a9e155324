import { CATALOGUE, Fault } from '@tunnel/errors';
import { expect, test } from 'vitest';
import { CONFIG_PROBLEM_CODES, ConfigProblem, nearestWord } from './problem.ts';

test.each(CONFIG_PROBLEM_CODES)('%s says the same words as the catalogue', (code) => {
  const names = [...CATALOGUE[code].text.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const values = Object.fromEntries(names.map((name) => [name, `<${name}>`]));
  expect(new ConfigProblem(code, values).message).toBe(new Fault(code, values).message);
});

const KNOWN = ['control_port', 'api_port', 'api_host', 'host', 'domain'];

test.each([
  ['contrl_port', 'control_port'],
  ['contorl_port', 'control_port'],
  ['control-port', 'control_port'],
  ['Control_Port', 'control_port'],
  ['api_hots', 'api_host'],
  ['hots', 'host'],
])('%s was meant to be %s', (written, meant) => {
  expect(nearestWord(written, KNOWN)).toBe(meant);
});

test.each(['banana', 'x', '', 'p'.repeat(10_000)])('nothing is near enough to %.10s', (written) => {
  expect(nearestWord(written, KNOWN)).toBeUndefined();
});
