// GET /api/tunnels/:id/policy, and the summary of the policy in the list of tunnels.
import { apiError, edgeTunnels, tunnelPolicy } from '@tunnel/contract';
import { compilePolicy, type Policy, policyHash } from '@tunnel/policy';
import { sha256Hex } from '@tunnel/runtime';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { NODE_DIGESTS } from '../policy/node-digests.ts';
import type { RoutePolicy } from '../routing/route-policy.ts';
import { ADMIN_TOKEN, ALICE_KEY, BOB_KEY, httpTunnel, type RestFixture, startRest } from './rest.fixture.ts';

const PLANTED = 'p1anted';
const HASH = `$scrypt$ln=14,r=8,p=1$${PLANTED}AAAAAAAAAAAAAAA$${PLANTED}AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA`;

const POLICY: Policy = {
  login: {
    issuer: 'https://id.example',
    client_id: 'shop',
    client_secret: `${PLANTED}-client`,
    scopes: ['openid'],
    session_secs: 600,
    trusted_origins: [],
  },
  rules: [
    {
      name: 'hooks',
      match: { path: ['/hooks/**'], not: { header: { authorization: [`Bearer ${PLANTED}`] } } },
      allow: true,
    },
    {
      auth: {
        token_header: 'x-tunnel-token',
        basic: { realm: 'tunnel', users: { ann: HASH } },
        tokens: [{ name: 'ci', sha256: 'ab'.repeat(32) }],
      },
    },
    {
      match: { header: { 'x-env': true, accept: ['text/*'] } },
      verify_webhook: { provider: 'github', secrets: [`${PLANTED}-hook`], max_bytes: 1024 },
    },
    { auth: { token_header: 'x-tunnel-token', login: { anyone: true } } },
  ],
};

let rest: RestFixture;
let route: RoutePolicy;

beforeEach(async () => {
  rest = await startRest();
  route = {
    compiled: compilePolicy(POLICY, NODE_DIGESTS),
    revision: 3,
    services: [],
    hash: policyHash(POLICY, [], sha256Hex),
    counts: { matched: [7, 0, 0, 2], answered: [0, 0, 0, 1] },
  };
  const alice = { kind: 'account', accountId: 'alice' } as const;
  rest.tunnels.set('tun_web', { ...httpTunnel('tun_web', alice), policy: { current: route } });
});
afterEach(() => rest.stop());

const ask = async (id: string, token = ALICE_KEY): Promise<{ status: number; text: string }> => {
  const response = await rest.request(`/api/tunnels/${id}/policy`, { token });
  return { status: response.status, text: await response.text() };
};

it('a tunnel’s policy shows each rule in words with its counts, the login, and the number of operator rules', async () => {
  const { status, text } = await ask('tun_web');
  const shown = tunnelPolicy.strict().parse(JSON.parse(text));
  expect(status).toBe(200);
  expect(shown).toMatchObject({
    revision: 3,
    hash_short: route.hash.slice(0, 8),
    operator_rules: 2,
    login: { issuer: 'https://id.example', client_id: 'shop' },
  });
  expect(shown.rules.map(({ summary: _, ...rule }) => rule)).toEqual([
    {
      index: 1,
      name: 'hooks',
      action: 'allow',
      matched: 7,
      answered: 0,
      match: { path: ['/hooks/**'], not: { header: { authorization: ['[redacted]'] } } },
    },
    { index: 2, name: null, match: null, action: 'auth', matched: 0, answered: 0 },
    {
      index: 3,
      name: null,
      action: 'verify_webhook',
      matched: 0,
      answered: 0,
      match: { header: { 'x-env': true, accept: ['text/*'] } },
    },
    { index: 4, name: null, match: null, action: 'auth', matched: 2, answered: 1 },
  ]);
  for (const { summary } of shown.rules) expect(summary).not.toBe('');
});

it('a tunnel’s policy shows no secret, hash or salt, not even to the operator', async () => {
  for (const token of [ALICE_KEY, ADMIN_TOKEN]) {
    const { status, text } = await ask('tun_web', token);
    expect(status).toBe(200);
    expect(text).not.toContain(PLANTED);
    expect(text).not.toContain('scrypt');
    expect(text).not.toContain('abab');
    expect(text).not.toContain(route.hash);
  }
});

it('header values that grant access are redacted: the token header, and headers named like a secret', async () => {
  const header = { 'x-ci': [`${PLANTED}*`], 'x-shared-secret': [PLANTED], 'x-env': ['test'] };
  const auth = { token_header: 'x-ci', tokens: [{ name: 'ci', sha256: 'ab'.repeat(32) }] };
  const compiled = compilePolicy(
    { login: null, rules: [{ match: { header, not: { header } }, allow: true }, { auth }] },
    NODE_DIGESTS,
  );
  const tunnel = rest.tunnels.get('tun_web') as object;
  rest.tunnels.set('tun_web', { ...tunnel, policy: { current: { ...route, compiled } } } as never);
  const { text } = await ask('tun_web');
  expect(text).not.toContain(PLANTED);
  const { rules } = JSON.parse(text) as { rules: { match: { header: Record<string, unknown> } }[] };
  expect(rules[0]?.match.header['x-env']).toEqual(['test']);
});

it('an operator’s login provider is shown by its name', async () => {
  const login = { provider: 'company', session_secs: 600, trusted_origins: [] };
  const compiled = compilePolicy({ ...POLICY, login }, NODE_DIGESTS);
  rest.tunnels.set('tun_web', {
    ...(rest.tunnels.get('tun_web') as never as object),
    policy: { current: { ...route, compiled } },
  } as never);
  expect(JSON.parse((await ask('tun_web')).text)).toMatchObject({ login: { provider: 'company' } });
});

it('a tunnel’s policy gets a 404 without a policy, for another account, and for an unknown tunnel', async () => {
  const code = async (id: string, token: string) => {
    const { status, text } = await ask(id, token);
    return [status, apiError.parse(JSON.parse(text)).code];
  };
  expect(await code('tun_alice', ALICE_KEY)).toEqual([404, 'POLICY_ABSENT']);
  expect(await code('tun_web', BOB_KEY)).toEqual([404, 'TUNNEL_UNKNOWN']);
  expect(await code('tun_none', ALICE_KEY)).toEqual([404, 'TUNNEL_UNKNOWN']);
});

it('the list of tunnels summarizes each policy, and has null for a tunnel without a policy', async () => {
  const tunnels = edgeTunnels.parse(await (await rest.request('/api/tunnels', { token: ALICE_KEY })).json());
  expect(tunnels.map(({ tunnel_id, policy }) => [tunnel_id, policy])).toEqual([
    ['tun_alice', null],
    [
      'tun_web',
      { rules: 4, actions: ['allow', 'auth', 'verify_webhook'], revision: 3, hash_short: route.hash.slice(0, 8) },
    ],
  ]);
});
