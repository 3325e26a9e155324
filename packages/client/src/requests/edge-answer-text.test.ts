import { CATALOGUE } from '@tunnel/errors';
import { expect, it } from 'vitest';
import { edgeAnswerText, REASONS } from './edge-answer-text.ts';

it('edgeAnswerText says in a few words why the edge answered', () => {
  expect(edgeAnswerText({ code: 'LOCAL_UNREACHABLE', rule: null })).toBe('service not running');
  expect(edgeAnswerText({ code: 'POLICY_DENIED', rule: 'office' })).toBe('rule office');
  expect(edgeAnswerText({ code: null, rule: '3' })).toBe('rule 3');
  expect(edgeAnswerText({ code: 'POLICY_DENIED', rule: 'of the operator' })).toBe('rule of the operator');
  expect(edgeAnswerText({ code: 'A_LATER_CODE', rule: null })).toBe('A_LATER_CODE');
  expect(edgeAnswerText({ code: null, rule: null })).toBe('answered by the edge');
});

it('every code with a text exists in the error catalogue', () => {
  expect(Object.keys(REASONS).filter((code) => !Object.hasOwn(CATALOGUE, code))).toEqual([]);
});
