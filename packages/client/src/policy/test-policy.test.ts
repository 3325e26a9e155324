import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type PolicyTestRequest, type PolicyVerdict, testPolicy } from './test-policy.ts';
import { type PolicyInput, policyFrom } from './tunnel-policy.ts';

const NOW = Date.UTC(2030, 0, 1);
const TOKEN = 'a-token-of-more-than-twenty';

const decide = (policy: PolicyInput, request: Partial<PolicyTestRequest> = {}): Promise<PolicyVerdict> =>
  testPolicy(
    policyFrom(policy),
    { protocol: 'http', services: ['api'] },
    { method: 'GET', path: '/', headers: [], address: '192.0.2.1', ...request },
    NOW,
  );

const basic = (user: string, password: string): [string, string] => [
  'Authorization',
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
];

describe('a simulated policy decision', () => {
  it('shows for each rule whether and why the rule matched or was not reached', async () => {
    const verdict = await decide([
      { name: 'office', match: { address: '10.0.0.0/8' }, allow: true },
      { name: 'closed', deny: true },
      { allow: true },
    ]);
    expect(verdict).toMatchObject({
      outcome: 'answer',
      status: 403,
      code: 'POLICY_DENIED',
      rule: { index: 2, name: 'closed', action: 'deny' },
      location: null,
      service: null,
      request: null,
    });
    expect(verdict.trace).toMatchObject([
      { index: 1, name: 'office', action: 'allow', matched: false, note: 'address' },
      { index: 2, name: 'closed', action: 'deny', matched: true },
      { index: 3, name: null, action: 'allow', matched: false, note: 'not reached' },
    ]);
  });

  it('shows the request as the local service gets it', async () => {
    const verdict = await decide(
      [
        { match: { path: '/api/**' }, route: 'api' },
        { rewrite: { strip_prefix: '/api' } },
        { request_headers: { set: { 'X-From': '{address}' } } },
      ],
      { path: '/api/items?x=1', headers: [['Accept', 'text/html']] },
    );
    expect(verdict).toMatchObject({
      outcome: 'pass',
      status: null,
      service: 'api',
      request: { method: 'GET', path: '/items?x=1', headers: { accept: 'text/html', 'x-from': '192.0.2.1' } },
    });
  });

  it('passes the request unchanged when there are no rules', async () => {
    const verdict = await decide([], { path: '/a%2Fb?c' });
    expect([verdict.outcome, verdict.request?.path, verdict.trace]).toEqual(['pass', '/a%2Fb?c', []]);
  });

  it('shows the target of a redirect', async () => {
    const verdict = await decide([{ redirect: { to: 'https://other.example{path}', status: 301 } }], { path: '/x' });
    expect(verdict).toMatchObject({ status: 301, code: null, location: 'https://other.example/x' });
  });
});

describe('simulated credentials are really checked', () => {
  const policy: PolicyInput = [
    { auth: { basic: { users: { anna: 'secret' } }, tokens: [{ name: 'ci', token: TOKEN }] } },
  ];

  it.each<[string, Partial<PolicyTestRequest>, number | null]>([
    ['nothing', {}, 401],
    ['the password', { headers: [basic('anna', 'secret')] }, null],
    ['a wrong password', { headers: [basic('anna', 'Secret')] }, 401],
    ['a user that there is not', { headers: [basic('bert', 'secret')] }, 401],
    ['the token', { headers: [['X-Tunnel-Token', TOKEN]] }, null],
    ['a wrong token', { headers: [['X-Tunnel-Token', `${TOKEN}x`]] }, 401],
  ])('%s', async (_, request, status) => {
    expect((await decide(policy, request)).status).toBe(status);
  });

  it('credentials are removed from the request to the local service', async () => {
    const { request } = await decide(policy, { headers: [basic('anna', 'secret')] });
    expect(request?.headers).toMatchObject({ 'x-tunnel-user': 'anna', 'x-tunnel-auth': 'basic' });
    expect(request?.headers).not.toHaveProperty('authorization');
  });

  it('webhook signatures are checked against the exact body', async () => {
    const hooks: PolicyInput = [{ verify_webhook: { provider: 'github', secret: 'hush' } }];
    const body = Buffer.from('{"action":"opened"}');
    const signature = `sha256=${createHmac('sha256', 'hush').update(body).digest('hex')}`;
    const signed = { method: 'POST', headers: [['X-Hub-Signature-256', signature]] as const, body };
    expect((await decide(hooks, signed)).outcome).toBe('pass');
    expect(await decide(hooks, { ...signed, body: Buffer.from('{"action":"closed"}') })).toMatchObject({
      status: 403,
      code: 'POLICY_WEBHOOK_REFUSED',
    });
  });
});

describe('a simulated user', () => {
  const company: PolicyInput = {
    login: { provider: 'company' },
    rules: [{ auth: { login: { domains: ['example.com'] } } }],
  };

  it('counts as a finished sign-in, which the rules still check', async () => {
    const pass = await decide(company, { user: 'Anna@Example.com', headers: [['Cookie', 'theme=dark']] });
    expect(pass.request?.headers).toMatchObject({ cookie: 'theme=dark', 'x-tunnel-auth': 'login' });
    expect(JSON.stringify(pass)).not.toContain('tunnel_login');
    expect(await decide(company, { user: 'eve@other.example' })).toMatchObject({ code: 'POLICY_LOGIN_REFUSED' });
  });

  it('has the claims that a rule requires, unless the rule also lists emails', async () => {
    const rulesOf = (login: object): PolicyInput => ({ login: { provider: 'company' }, rules: [{ auth: { login } }] });
    const claims = { groups: ['staff', 'board'], level: '3' };
    expect(await decide(rulesOf({ claims }), { user: 'ann@example.com' })).toMatchObject({ outcome: 'pass' });
    expect((await decide(rulesOf({ claims }))).status).toBe(401);
    const either = rulesOf({ emails: ['ann@example.com'], claims });
    expect(await decide(either, { user: 'eve@other.example' })).toMatchObject({ code: 'POLICY_LOGIN_REFUSED' });
  });

  it('that is missing: a browser is redirected to the provider, a program gets a 401', async () => {
    expect(await decide(company, { headers: [['Accept', 'text/html']] })).toMatchObject({
      status: 302,
      location: expect.stringContaining('company') as string,
    });
    expect((await decide(company)).status).toBe(401);
  });

  it('counts as a valid JWT', async () => {
    const jwt: PolicyInput = [
      { auth: { jwt: { issuer: 'https://id.example.com', audience: 'shop', claims: { role: 'admin' } } } },
    ];
    expect((await decide(jwt)).status).toBe(401);
    const { request } = await decide(jwt, { user: 'robot' });
    expect(request?.headers).toMatchObject({ 'x-tunnel-user': 'robot', 'x-tunnel-auth': 'jwt' });
    expect(request?.headers).not.toHaveProperty('authorization');
  });
});

it('a simulated request that no edge would accept is refused with CLIENT_USAGE', async () => {
  await expect(decide([], { path: 'no-slash' })).rejects.toMatchObject({ code: 'CLIENT_USAGE' });
  await expect(decide([], { headers: [['Bad Name', 'x']] })).rejects.toMatchObject({ code: 'CLIENT_USAGE' });
});
