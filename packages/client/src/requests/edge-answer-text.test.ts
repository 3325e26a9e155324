import { CATALOGUE } from '@tunnel/errors';
import { expect, it } from 'vitest';
import { edgeAnswerText, REASONS } from './edge-answer-text.ts';

it('says why the edge answered, in a few words', () => {
  expect(edgeAnswerText({ code: 'LOCAL_UNREACHABLE', rule: null })).toBe('service not running');
  expect(edgeAnswerText({ code: 'POLICY_DENIED', rule: 'office' })).toBe('rule office');
  expect(edgeAnswerText({ code: null, rule: '3' })).toBe('rule 3');
  expect(edgeAnswerText({ code: 'POLICY_DENIED', rule: 'of the operator' })).toBe('rule of the operator');
  expect(edgeAnswerText({ code: 'A_LATER_CODE', rule: null })).toBe('A_LATER_CODE');
  expect(edgeAnswerText({ code: null, rule: null })).toBe('answered by the edge');
});

it('has words only for codes that exist', () => {
  expect(Object.keys(REASONS).filter((code) => !Object.hasOwn(CATALOGUE, code))).toEqual([]);
});
