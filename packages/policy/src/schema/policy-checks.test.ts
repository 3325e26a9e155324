import { describe, expect, it } from 'vitest';
import { policyOf, RULES, SCRYPT, SHA256 } from '../policies.fixture.ts';
import { actionOf, type Match, type Policy, type Rule } from '../policy.ts';
import { POLICY_WIRE_MAX_BYTES, type PolicyAbout, problemsOfPolicy, warningsOfPolicy } from './policy-checks.ts';
import { problemText } from './policy-problems.ts';

const HTTP: PolicyAbout = { protocol: 'http', services: ['api'] };
const LOGIN = { provider: 'company', session_secs: 28_800, trusted_origins: [] } as const;

const textsOf = (policy: Policy, about: PolicyAbout): string[] => problemsOfPolicy(policy, about).map(problemText);
const warningsFor = (policy: Policy): string[] => warningsOfPolicy(policy, HTTP).map(problemText);

const path = (...globs: string[]): { readonly match: Match } => ({ match: { path: globs } });
const AUTH = { auth: { basic: { realm: 'r', users: { ann: SCRYPT } }, token_header: 'x-tunnel-token' } };
const CORS = { cors: { origins: ['*'], credentials: false, max_age_secs: 600 } };

describe('a policy for an http tunnel', () => {
  it('can have every action', () => {
    expect(textsOf({ login: LOGIN, rules: RULES.map(([, rule]) => rule) }, HTTP)).toEqual([]);
  });

  it('routes only to existing services, and an error suggests the closest name', () => {
    const policy = policyOf({ deny: 403 }, { name: 'to the api', route: 'apj' });
    expect(textsOf(policy, HTTP)).toEqual([
      "policy rule 2 (to the api): `route` names 'apj', which is not one of `services`; did you mean `api`?",
    ]);
    expect(problemsOfPolicy(policy, HTTP)[0]?.path).toEqual(['rules', 1, 'route']);
    expect(textsOf(policyOf({ route: 'x' }), { ...HTTP, services: [] })).toEqual([
      "policy rule 1: `route` names 'x', which is not one of `services` (there are none)",
    ]);
  });

  it('can require a login only with a sign-in provider', () => {
    const rule: Rule = { auth: { login: { anyone: true }, token_header: 'x-tunnel-token' } };
    expect(textsOf(policyOf(rule), HTTP)).toEqual([
      'policy rule 1: `auth.login` needs a `login` next to `rules`, with the sign-in provider',
    ]);
    expect(textsOf({ login: LOGIN, rules: [rule] }, HTTP)).toEqual([]);
  });
});

describe.each(['tcp', 'udp'] as const)('a policy for a %s tunnel', (protocol) => {
  const about = { protocol, services: [] };

  it('can have four actions; the others are refused as being for http tunnels', () => {
    for (const [, rule] of RULES) {
      const { match: _, ...bare } = rule as Rule & { readonly match?: Match };
      const action = actionOf(rule);
      const isFine = ['allow', 'deny', 'allow_addresses'].includes(action);
      if (action === 'rate_limit') continue;
      expect(textsOf(policyOf(bare as Rule), about)).toEqual(
        isFine ? [] : [`policy rule 1: \`${action}\` is for http tunnels`],
      );
    }
  });

  it('can match only addresses, also in `not`', () => {
    expect(
      textsOf(policyOf({ match: { address: ['10.0.0.0/8'], not: { address: ['10.1.0.0/16'] } }, deny: 403 }), about),
    ).toEqual([]);
    const policy = policyOf({ match: { path: ['/a'], not: { method: ['GET'], header: { a: true } } }, deny: 403 });
    expect(textsOf(policy, about)).toEqual([
      'policy rule 1: `match.path` is for http tunnels',
      'policy rule 1: `match.method` is for http tunnels',
      'policy rule 1: `match.header` is for http tunnels',
    ]);
    expect(problemsOfPolicy(policy, about)[1]?.path).toEqual(['rules', 0, 'match', 'not', 'method']);
  });

  it('can limit rates by address or for the whole tunnel', () => {
    const by = (key: string): Policy => policyOf({ rate_limit: { requests: 1, per_secs: 1, burst: 1, by: key } });
    expect([...textsOf(by('address'), about), ...textsOf(by('tunnel'), about)]).toEqual([]);
    for (const key of ['user', 'header:x-a']) expect(textsOf(by(key), about)[0]).toMatch(/is for http tunnels$/);
  });

  it('cannot have a login', () => {
    expect(textsOf({ login: LOGIN, rules: [] }, about)).toEqual(['policy login: `login` is for http tunnels']);
  });
});

describe("the operator's policy", () => {
  it('cannot have a login or a route', () => {
    const about = { protocol: 'http', services: ['api'], isOperator: true } as const;
    const rules: Rule[] = [
      { route: 'api' },
      { auth: { login: { anyone: true }, token_header: 'x-tunnel-token' } },
      { deny: 403 },
    ];
    expect(textsOf({ login: LOGIN, rules }, about)).toEqual([
      "policy login: the operator's policy cannot use `login`",
      "policy rule 1: the operator's policy cannot use `route`",
      "policy rule 2: the operator's policy cannot use `auth.login`",
    ]);
    expect(warningsOfPolicy(policyOf(), about)).toEqual([]);
  });

  it('gets a warning for each rule that tcp and udp tunnels ignore, except for rules that only change something', () => {
    const about = { protocol: 'http', services: [], isOperator: true } as const;
    const policy = policyOf(
      AUTH,
      { allow_addresses: ['10.0.0.0/8'] },
      { match: { not: { path: ['/a'] }, address: ['::1'] }, deny: 403 },
      { response_headers: { set: { a: 'b' } } },
      { name: 'small', max_body: 1 },
      { rate_limit: { requests: 1, per_secs: 1, burst: 1, by: 'address' } },
      { match: { path: ['/x'] }, allow: true },
    );
    const rest = 'applies to requests; tcp and udp tunnels ignore the rule';
    expect(warningsOfPolicy(policy, about).map(problemText)).toEqual([
      `policy rule 1: \`auth\` ${rest}`,
      `policy rule 3: \`match.path\` ${rest}`,
      `policy rule 5 (small): \`max_body\` ${rest}`,
    ]);
    expect(warningsFor(policy)).toEqual([]);
  });
});

describe('the limits of a whole policy', () => {
  it('count all rules together, and the error names the rule that exceeds the limit', () => {
    const networks = (count: number): Rule => ({
      allow_addresses: Array.from({ length: count }, (_, n) => `10.0.${n >> 8}.${n & 255}`),
    });
    const inNot: Rule = { match: { not: { address: ['::1'] } }, deny: 403 };
    expect(textsOf(policyOf(networks(600), networks(399), inNot), HTTP)).toEqual([]);
    expect(textsOf(policyOf(networks(600), networks(400), inNot), HTTP)).toEqual([
      'policy rule 3: a policy has at most 1000 addresses and networks',
    ]);
    const users = (from: number, count: number): Rule => ({
      auth: {
        basic: {
          realm: 'r',
          users: Object.fromEntries(Array.from({ length: count }, (_, n) => [`u${from + n}`, SCRYPT])),
        },
        token_header: 'x-tunnel-token',
      },
    });
    expect(textsOf(policyOf(users(0, 60), users(60, 40)), HTTP)).toEqual([]);
    expect(textsOf(policyOf(users(0, 60), users(60, 41)), HTTP)).toEqual([
      'policy rule 2: a policy has at most 100 users',
    ]);
    const tokens = (count: number): Rule => ({
      auth: {
        tokens: Array.from({ length: count }, (_, n) => ({ name: `t${n}`, sha256: SHA256 })),
        token_header: 'x-tunnel-token',
      },
    });
    expect(textsOf(policyOf(tokens(50), tokens(51)), HTTP)).toEqual(['policy rule 2: a policy has at most 100 tokens']);
    const people = (count: number): Rule => ({
      auth: {
        login: { domains: Array.from({ length: count }, (_, n) => `d${n}.example`), emails: ['a@b.example'] },
        token_header: 'x-tunnel-token',
      },
    });
    expect(textsOf({ login: LOGIN, rules: [people(499)] }, HTTP)).toEqual([]);
    expect(textsOf({ login: LOGIN, rules: [people(250), people(250)] }, HTTP)).toEqual([
      'policy rule 2: a policy has at most 500 email addresses and domains',
    ]);
  });

  it('allow at most 48 KiB on the wire', () => {
    const page = (bytes: number): Rule => ({ error_page: { body: 'x'.repeat(bytes) } });
    const empty =
      '{"login":null,"rules":[{"error_page":{"body":""}},{"error_page":{"body":""}},{"error_page":{"body":""}}]}'
        .length;
    const most = POLICY_WIRE_MAX_BYTES - empty;
    const pages = (last: number): Policy => policyOf(page(16_000), page(16_000), page(last));
    expect(textsOf(pages(most - 32_000), HTTP)).toEqual([]);
    expect(textsOf(pages(most - 31_999), HTTP)).toEqual([
      'policy: it has 49153 bytes when sent as JSON; the limit is 49152',
    ]);
  });
});

describe('a policy warning', () => {
  it('reports a policy without effect: no rules, or an unused login', () => {
    expect(warningsFor(policyOf())).toEqual(['policy: there is no rule: everyone can visit']);
    expect(warningsFor({ login: LOGIN, rules: [{ deny: 403 }] })).toEqual([
      'policy login: there is a `login`, but no rule uses it',
    ]);
    expect(warningsFor(policyOf(AUTH))).toEqual([]);
  });

  it('reports rules that are never reached, once', () => {
    expect(warningsFor(policyOf({ allow: true }, AUTH, { deny: 403 }))).toEqual([
      'policy rule 2: never reached: rule 1 applies to all requests',
    ]);
    expect(warningsFor(policyOf({ ...path('/a'), allow: true }, AUTH))).toEqual([]);
  });

  it('reports `cors` after an `auth` for the same requests', () => {
    const text =
      'policy rule 2: `cors` comes after the `auth` of rule 1: browser preflights carry no credentials; move `cors` above';
    expect(warningsFor(policyOf(AUTH, CORS))).toEqual([text]);
    expect(warningsFor(policyOf({ ...path('/api/**'), ...AUTH }, { ...path('/api/**'), ...CORS }))).toEqual([text]);
    expect(warningsFor(policyOf({ ...path('/admin/**'), ...AUTH }, { ...path('/api/**'), ...CORS }))).toEqual([]);
    expect(warningsFor(policyOf(CORS, AUTH))).toEqual([]);
  });

  it('reports a rate limit by user where no user is known', () => {
    const limit: Rule = { rate_limit: { requests: 1, per_secs: 1, burst: 1, by: 'user' } };
    expect(warningsFor(policyOf(limit, AUTH))).toEqual([
      'policy rule 1: no user is known at this point: without an `auth` above, requests are counted by address',
    ]);
    expect(warningsFor(policyOf(AUTH, limit))).toEqual([]);
  });
});
