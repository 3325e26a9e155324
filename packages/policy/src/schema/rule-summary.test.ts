import { describe, expect, it } from 'vitest';
import { policyOf, RULES, SCRYPT, SHA256 } from '../policies.fixture.ts';
import type { LoginProvider, Rule } from '../policy.ts';
import { guardWords, summaryOf } from './rule-summary.ts';

const HEADER = { token_header: 'x-tunnel-token' };
const COMPANY: LoginProvider = { provider: 'company', session_secs: 1, trusted_origins: [] };
const LOGIN: Rule = { auth: { login: { domains: ['example.com'] }, ...HEADER } };

describe('the plain-text summary of a rule', () => {
  it.each<[Rule, string]>([
    [{ allow: true }, 'Everyone: allowed, and later rules are skipped'],
    [{ match: { path: ['/admin/**'] }, deny: 403 }, 'Requests to /admin/**: rejected with 403'],
    [
      {
        match: { method: ['GET', 'HEAD'], path: ['/a', '/b', '/c', '/d'], not: { address: ['::1'] } },
        allow_addresses: ['10.0.0.0/8'],
      },
      'Requests with GET or HEAD to /a, /b or 2 more but not those from ::1: only from 10.0.0.0/8',
    ],
    [
      { match: { header: { 'x-key': ['k1'], dnt: true, cookie: false } }, deny: 404 },
      'Requests with a certain x-key with the header dnt without the header cookie: rejected with 404',
    ],
    [
      {
        auth: {
          basic: { realm: 'r', users: { ann: SCRYPT, bo: SCRYPT } },
          tokens: [{ name: 'ci', sha256: SHA256 }],
          jwt: { issuer: 'https://id.example.com/x', audience: ['a'], claims: { scope: ['s'] } },
          login: { emails: ['ann@example.com'], domains: ['example.org'], claims: { groups: ['staff'] } },
          ...HEADER,
        },
      },
      'Everyone: only with a login (@example.org, 1 person, those with a certain groups), or a password (2 users), or a token (ci), or a JWT of id.example.com with a certain scope',
    ],
    [
      { rate_limit: { requests: 60, per_secs: 10, burst: 5, by: 'header:x-api-key' } },
      'Everyone: at most 60 requests in 10 s for each x-api-key, 5 at once',
    ],
    [{ rate_limit: { requests: 1, per_secs: 1, burst: 1, by: 'tunnel' } }, 'Everyone: at most 1 request in 1 s in all'],
    [{ max_body: 10 * 1024 * 1024 }, 'Everyone: bodies of at most 10 MiB'],
    [{ max_body: 1025 }, 'Everyone: bodies of at most 1025 bytes'],
    [{ redirect: { to: '/new', status: 302 } }, 'Everyone: sent to /new (302)'],
    [{ route: 'api' }, 'Everyone: go to the service api'],
    [
      { request_headers: { set: { 'X-Key': 'hidden' }, remove: ['cookie'] } },
      'Everyone: request headers: X-Key set; cookie removed',
    ],
  ])('%j', (rule, text) => {
    expect(summaryOf(rule)).toBe(text);
  });

  it('exists for every action, and contains no secret', () => {
    for (const [, rule] of RULES) {
      const text = summaryOf(rule);
      expect(text).toMatch(/^(Everyone|Requests .+): \S/);
      for (const hidden of [SCRYPT, SHA256, 'whsec_1', 'back soon', '<h1>', 'staff', 'ann@', '*curl*']) {
        expect(text).not.toContain(hidden);
      }
    }
  });
});

describe("the short description of a tunnel's protection", () => {
  it.each<[string, readonly Rule[], LoginProvider | null]>([
    ['open to everyone', [], null],
    ['open to everyone', [{ route: 'api' }, { rewrite: { add_prefix: '/a' } }], null],
    ['open to everyone', [{ allow: true }, LOGIN], COMPANY],
    [
      'login company, 2 paths open',
      [{ match: { path: ['/hooks/**'] }, allow: true }, { match: { path: ['/health'] }, allow: true }, LOGIN],
      COMPANY,
    ],
    [
      'login accounts.example.com',
      [LOGIN],
      {
        issuer: 'https://accounts.example.com',
        client_id: 'c',
        scopes: ['openid'],
        session_secs: 1,
        trusted_origins: [],
      },
    ],
    [
      'password or token',
      [{ auth: { basic: { realm: 'r', users: { a: SCRYPT } }, tokens: [{ name: 'a', sha256: SHA256 }], ...HEADER } }],
      null,
    ],
    [
      '2 networks, rate limit',
      [
        { allow_addresses: ['::1', '10.0.0.0/8'] },
        { rate_limit: { requests: 1, per_secs: 1, burst: 1, by: 'address' } },
      ],
      null,
    ],
    ['1 network, 1 exception', [{ match: { header: { a: true } }, allow: true }, { allow_addresses: ['::1'] }], null],
    [
      'stripe webhooks, some requests denied',
      [
        { verify_webhook: { provider: 'stripe', secrets: ['s'], max_bytes: 1 } },
        { match: { not: { path: ['/h'] } }, deny: 404 },
      ],
      null,
    ],
    [
      'login company for some requests, 1 network',
      [{ match: { path: ['/admin/**'] }, ...LOGIN }, { allow_addresses: ['::1'] }],
      COMPANY,
    ],
    ['closed', [{ deny: 403 }], null],
  ])('%s', (words, rules, login) => {
    expect(guardWords({ ...policyOf(...rules), login })).toBe(words);
  });
});
