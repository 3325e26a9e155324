import { Fault } from '@tunnel/errors';
import { expect, it } from 'vitest';
import { apiError, apiErrorHeaders, apiErrorOf, REQUEST_ID_PATTERN } from './api-error.ts';

it('an API error has the public text and code, and nothing internal', () => {
  const fault = new Fault('INTERNAL', {}, { internal: 'password is hunter2', cause: new Error('hunter2') });
  const body = apiErrorOf(fault, 'req_1');
  expect(apiError.parse(body)).toEqual(body);
  expect(JSON.stringify(body)).not.toContain('hunter2');
});

it('a request id of a caller is accepted only if it is short and plain', () => {
  for (const id of ['a', 'req_1.2-3', 'x'.repeat(64)]) expect(REQUEST_ID_PATTERN.test(id)).toBe(true);
  for (const id of ['', 'x'.repeat(65), 'a b', 'a\nb', 'ü']) expect(REQUEST_ID_PATTERN.test(id)).toBe(false);
});

it('an API error that is worth a retry has Retry-After', () => {
  const after = (fault: Fault) => apiErrorHeaders(fault)['retry-after'];
  expect(after(new Fault('IDEMPOTENCY_KEY_BUSY', { seconds: 3 }))).toBe('3');
  expect(after(new Fault('BILLING_PROCESSOR_AWAY'))).toBe('1');
  expect(after(new Fault('IDEMPOTENCY_KEY_REUSED'))).toBeUndefined();
});
