import { expect, it } from 'vitest';
import { headerOf, requestOf } from '../policy.fixture.ts';
import type { Cors } from '../policy.ts';
import type { HeaderPair } from '../policy-step.ts';
import { corsEdit, isPreflight, preflightResponse } from './cors.ts';

const RULE: Cors = { origins: ['https://app.example'], credentials: true, max_age_secs: 600 };
const from = (origin: string): HeaderPair[] => [
  ['origin', origin],
  ['access-control-request-method', 'PUT'],
  ['access-control-request-headers', 'x-a, x-b'],
];
const preflight = (rule: Cors, origin: string): readonly HeaderPair[] => {
  const response = preflightResponse(rule, requestOf({ method: 'OPTIONS', headers: from(origin) }));
  expect(response).toMatchObject({ status: 204, body: '' });
  return response.headers;
};

it('a preflight of a known origin hears what it may', () => {
  const headers = preflight(RULE, 'https://app.example');
  expect(headerOf(headers, 'access-control-allow-origin')).toBe('https://app.example');
  expect(headerOf(headers, 'access-control-allow-credentials')).toBe('true');
  expect(headerOf(headers, 'access-control-allow-methods')).toBe('PUT');
  expect(headerOf(headers, 'access-control-allow-headers')).toBe('x-a, x-b');
  expect(headerOf(headers, 'access-control-max-age')).toBe('600');
  expect(headerOf(headers, 'vary')).toContain('Origin');
});

it('what the rule names counts, not what was asked for', () => {
  const headers = preflight({ ...RULE, methods: ['GET'], headers: ['x-c'] }, 'https://app.example');
  expect(headerOf(headers, 'access-control-allow-methods')).toBe('GET');
  expect(headerOf(headers, 'access-control-allow-headers')).toBe('x-c');
});

it('a preflight of another origin hears nothing', () => {
  for (const origin of ['https://evil.example', 'null', 'https://app.example.evil.example', 'http://app.example']) {
    expect(preflight(RULE, origin).map(([name]) => name)).toEqual(['vary']);
  }
});

it('every origin may where the rule says so, and never with credentials', () => {
  const open: Cors = { ...RULE, origins: ['*'], credentials: false };
  expect(headerOf(preflight(open, 'https://x'), 'access-control-allow-origin')).toBe('*');
  expect(headerOf(preflight({ ...open, credentials: true }, 'https://x'), 'access-control-allow-origin')).toBeNull();
});

it('only OPTIONS with an origin and a method to come is a preflight', () => {
  expect(isPreflight(requestOf({ method: 'OPTIONS', headers: from('https://x') }))).toBe(true);
  expect(isPreflight(requestOf({ method: 'GET', headers: from('https://x') }))).toBe(false);
  expect(isPreflight(requestOf({ method: 'OPTIONS', headers: [['origin', 'https://x']] }))).toBe(false);
});

it('an answer to a known origin says so, one to any other says nothing', () => {
  const edit = (origin: string) =>
    corsEdit({ ...RULE, expose: ['x-total'] }, requestOf({ headers: [['origin', origin]] }));
  expect(edit('https://app.example')).toEqual({
    kind: 'cors',
    fields: [
      ['access-control-allow-origin', 'https://app.example'],
      ['access-control-allow-credentials', 'true'],
      ['access-control-expose-headers', 'x-total'],
    ],
  });
  expect(edit('https://evil.example')).toEqual({ kind: 'cors', fields: [] });
});
