import { Fault } from '@tunnel/errors';
import { expect, it } from 'vitest';
import { fieldProblem, problemText, requestIdOf } from './problem-text.ts';

const refusal = Fault.fromWire('API_BAD_REQUEST', 'password: must have at least 8 characters', { request_id: 'req_1' });

it('an error about a form field is shown at this field', () => {
  expect(fieldProblem(refusal, 'password')).toBe('Must have at least 8 characters.');
  expect(fieldProblem(refusal, 'email')).toBe(null);
  expect(fieldProblem(new Fault('LOGIN_WRONG'), 'password')).toBe(null);
});

it('an API error is shown as a sentence', () => {
  expect(problemText(Fault.fromWire('OF_TOMORROW', 'no more today'))).toBe('No more today.');
  const elsewhere = Fault.fromWire('OF_TOMORROW', 'http://x is no platform');
  expect(problemText(elsewhere)).toBe('http://x is no platform.');
  expect(problemText(new TypeError('x is undefined'))).not.toContain('undefined');
  expect(problemText(new Fault('CLIENT_PLATFORM_UNREACHABLE', { url: 'u', reason: 'r' }))).toContain(
    'reach the platform',
  );
});

it('the request id is shown only for errors that support must look up', () => {
  const of = (code: string): string | null => requestIdOf(Fault.fromWire(code, 'text', { request_id: 'req_1' }));
  expect(['INTERNAL', 'OF_TOMORROW', 'LOGIN_BUSY'].map(of)).toEqual(['req_1', 'req_1', 'req_1']);
  expect(['LOGIN_WRONG', 'API_BAD_REQUEST', 'KEY_UNKNOWN', 'LOGIN_THROTTLED'].map(of)).toEqual([
    null,
    null,
    null,
    null,
  ]);
  expect([requestIdOf(refusal), requestIdOf(new Fault('INTERNAL')), requestIdOf(null)]).toEqual([null, null, null]);
});
