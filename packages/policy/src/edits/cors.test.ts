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

it('a preflight from an allowed origin gets the allowed methods, headers and max-age', () => {
  const headers = preflight(RULE, 'https://app.example');
  expect(headerOf(headers, 'access-control-allow-origin')).toBe('https://app.example');
  expect(headerOf(headers, 'access-control-allow-credentials')).toBe('true');
  expect(headerOf(headers, 'access-control-allow-methods')).toBe('PUT');
  expect(headerOf(headers, 'access-control-allow-headers')).toBe('x-a, x-b');
  expect(headerOf(headers, 'access-control-max-age')).toBe('600');
  expect(headerOf(headers, 'vary')).toContain('Origin');
});

it('the methods and headers of the rule are sent, instead of the requested values', () => {
  const headers = preflight({ ...RULE, methods: ['GET'], headers: ['x-c'] }, 'https://app.example');
  expect(headerOf(headers, 'access-control-allow-methods')).toBe('GET');
  expect(headerOf(headers, 'access-control-allow-headers')).toBe('x-c');
});

it('a preflight from another origin gets no CORS headers', () => {
  for (const origin of ['https://evil.example', 'null', 'https://app.example.evil.example', 'http://app.example']) {
    expect(preflight(RULE, origin).map(([name]) => name)).toEqual(['vary']);
  }
});

it('a rule with origin * allows every origin, but never with credentials', () => {
  const open: Cors = { ...RULE, origins: ['*'], credentials: false };
  expect(headerOf(preflight(open, 'https://x'), 'access-control-allow-origin')).toBe('*');
  expect(headerOf(preflight({ ...open, credentials: true }, 'https://x'), 'access-control-allow-origin')).toBeNull();
});

it('only OPTIONS with Origin and Access-Control-Request-Method is a preflight', () => {
  expect(isPreflight(requestOf({ method: 'OPTIONS', headers: from('https://x') }))).toBe(true);
  expect(isPreflight(requestOf({ method: 'GET', headers: from('https://x') }))).toBe(false);
  expect(isPreflight(requestOf({ method: 'OPTIONS', headers: [['origin', 'https://x']] }))).toBe(false);
});

it('a response to an allowed origin gets CORS headers, a response to another origin gets none', () => {
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
