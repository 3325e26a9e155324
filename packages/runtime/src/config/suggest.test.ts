import { expect, test } from 'vitest';
import { nearestWord } from './suggest.ts';

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
