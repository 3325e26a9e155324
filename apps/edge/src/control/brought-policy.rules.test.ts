import { Fault } from '@tunnel/errors';
import { describe, expect, it } from 'vitest';
import { type BroughtFields, judgePolicy, type PolicyFacts } from './brought-policy.rules.ts';

const said = (brought: BroughtFields, facts: Partial<PolicyFacts> = {}): string => {
  const judged = judgePolicy(brought, { protocol: 'http', loginProviders: ['company'], ...facts });
  if (!(judged instanceof Fault)) return judged === null ? 'none' : 'good';
  expect([judged.code, judged.status, judged.retryable]).toEqual(['POLICY_INVALID', 400, false]);
  return judged.message;
};

const rules = (...list: unknown[]): { readonly policy: unknown } => ({ policy: { login: null, rules: list } });
const login = (provider: string): object => ({ provider, session_secs: 600, trusted_origins: [] });

it('a missing policy counts as no policy, and a valid policy is returned unchanged', () => {
  expect([said({}), said({ policy: null }), said({ services: ['api'] })]).toEqual(['none', 'none', 'none']);
  const policy = { login: null, rules: [{ name: 'office', match: { path: ['/admin/**'] }, deny: 403 }] };
  expect(judgePolicy({ policy }, { protocol: 'https', loginProviders: [] })).toEqual(policy);
});

describe('the refusal of a policy', () => {
  it('names the rule by number and name if the schema rejects the rule', () => {
    expect(said(rules({ deny: 403 }, { name: 'office', deny: 200 }))).toMatch(
      /^policy rule 2 \(office\): `deny` must be /,
    );
    expect(said(rules({ name: 'x', deny: 403, surprise: 1 }))).toMatch(/^policy rule 1 \(x\): /);
    expect(said(rules({ deny: 403 }, 7))).toMatch(/^policy rule 2: /);
    expect(said(rules({ name: 'broken\nline', deny: 'no' }))).toMatch(/^policy rule 1 \(broken\?line\): /);
  });

  it('names the rule by number and name if the rule does not fit the tunnel', () => {
    expect(
      said({ ...rules({ name: 'office', allow: true }, { name: 'door', auth: auth() }) }, { protocol: 'tcp' }),
    ).toBe('policy rule 2 (door): `auth` is for http tunnels');
    expect(said({ ...rules({ route: 'admin' }), services: ['api'] })).toMatch(/^policy rule 1: /);
  });

  it('names the login or the whole policy if no rule is at fault', () => {
    expect(said({ policy: [] })).toMatch(/^policy: /);
    expect(said({ policy: 'deny' })).toMatch(/^policy: /);
    expect(said({ policy: { login: null, rules: [], surprise: 1 } })).toMatch(/^policy: /);
    expect(said({ policy: { login: { provider: 7 }, rules: [] } })).toMatch(/^policy login: /);
  });
});

it('the login provider must be configured by the operator or defined in the tunnel’s policy', () => {
  const rule = { auth: { token_header: 'x-tunnel-token', login: { anyone: true } } };
  expect(said({ policy: { login: login('company'), rules: [rule] } })).toBe('good');
  expect(said({ policy: { login: login('x'), rules: [rule] } })).toBe(
    "policy login: provider 'x' is not known to this edge",
  );
  const own = {
    issuer: 'https://id.example',
    client_id: 'c',
    scopes: ['openid'],
    session_secs: 600,
    trusted_origins: [],
  };
  expect(said({ policy: { login: own, rules: [rule] } }, { loginProviders: [] })).toBe('good');
});

it('policies are for http, tcp and udp tunnels, services for http, the PROXY protocol for ports', () => {
  const some = rules({ deny: 403 });
  expect((['http', 'https', 'tcp', 'udp'] as const).map((protocol) => said(some, { protocol }))).toEqual(
    Array.from({ length: 4 }, () => 'good'),
  );
  expect(said(some, { protocol: 'p2p' })).toBe('policy is for http, tcp and udp tunnels');
  expect(said({ services: ['api'] }, { protocol: 'tcp' })).toBe('services are for http tunnels');
  expect(said({ services: ['api', 'b', 'api'] })).toBe("services: 'api' is listed twice");
  expect(said({ proxyProtocol: 'v2' })).toBe('proxy_protocol is for tcp and udp tunnels');
  expect(said({ proxyProtocol: 'v2' }, { protocol: 'tcp' })).toBe('none');
});

it('the refusal of a policy contains no secret of the policy', () => {
  const planted = 'p1anted-s3cret-value';
  const broken = [
    rules({ verify_webhook: { provider: 'nobody', secrets: [planted], max_bytes: 1 } }),
    rules({ auth: { token_header: 'x-tunnel-token', basic: { realm: 'r', users: { ann: planted } } } }),
    rules({ auth: { token_header: 'x-tunnel-token', tokens: [{ name: 'ci', sha256: planted }] } }),
    { policy: { login: { issuer: 'x', client_id: 'c', client_secret: planted, scopes: [] }, rules: [] } },
  ];
  for (const brought of broken) {
    const line = said(brought);
    expect(line).toMatch(/^policy /);
    expect(line).not.toContain(planted);
  }
});

const auth = (): object => ({ token_header: 'x-tunnel-token', tokens: [{ name: 'ci', sha256: 'ab'.repeat(32) }] });
