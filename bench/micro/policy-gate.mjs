// Measures policies at the edge: a request through the gate and its driver, with rate limits and with known passwords.

import { parseRequestHead } from '@tunnel/http1';
import { compilePolicy, policyHash } from '@tunnel/policy';
import { Secret, systemClock } from '@tunnel/runtime';
import { ConnectionAuthCache } from '../../apps/edge/src/policy/connection-auth-cache.ts';
import { NODE_DIGESTS } from '../../apps/edge/src/policy/node-digests.ts';
import { hashPassword } from '../../apps/edge/src/policy/password-hash.ts';
import { PolicyDriver } from '../../apps/edge/src/policy/policy-driver.ts';
import { PolicyGate } from '../../apps/edge/src/policy/policy-gate.ts';
import { PolicySubject } from '../../apps/edge/src/policy/policy-subject.ts';
import { SealedTexts } from '../../apps/edge/src/policy/sealed-texts.ts';
import { TEN_RULES } from './policy-rules.mjs';

const PASSWORD = 'a password of the bench';
const TOKEN = 'a-token-of-the-bench-for-one-run-alone';
const HOST = 'web.localhost';
const LOGIN_SECRETS = [new Secret('k'.repeat(43))];
const LOGIN = {
  issuer: 'https://login.example',
  client_id: 'bench',
  client_secret: 'a-secret-of-the-bench',
  scopes: ['openid', 'email'],
  session_secs: 28800,
  trusted_origins: [],
};

const driver = new PolicyDriver({
  clock: { ...systemClock, setInterval: () => ({ cancel() {} }) },
  loginSecrets: LOGIN_SECRETS,
  providers: new Map(),
  operatorPolicy: null,
  allowPrivate: false,
  edgeUrl: () => 'https://edge.example.com',
});
const gate = new PolicyGate({ operator: null, driver, now: () => Date.now() });

const routeWith = (rules, login = null) => {
  const policy = { login, rules };
  const compiled = compilePolicy(policy, NODE_DIGESTS);
  const hash = policyHash(policy, [], NODE_DIGESTS.sha256Hex);
  const current = { compiled, revision: 0, hash, services: [], counts: { matched: [], answered: [] } };
  return { tunnelId: 'tun_1', owner: { kind: 'operator' }, publicUrl: 'http://web.localhost', policy: { current } };
};

/** Returns an operation that decides a request, as the ingress does. */
const deciding = (route, ...lines) => {
  const { method, path, headers, host, authority } = parseRequestHead(
    `GET /0/128 HTTP/1.1\r\nHost: ${HOST}\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`,
  );
  const request = {
    method,
    path,
    headers,
    host,
    authority,
    scheme: 'http',
    address: '127.0.0.1',
    isUpgrade: false,
    bodyLength: 0,
    requestId: 'req_1',
  };
  const asked = {
    request,
    subject: new PolicySubject(route, route.policy.current, request),
    authCache: new ConnectionAuthCache(),
    get signal() {
      return new AbortController().signal;
    },
  };
  return () => gate.decide(gate.inForceAt(route), asked);
};

// A limit that the loop cannot reach, because the loop is faster than any limit allowed in a policy.
const unlimited = { rate_limit: { requests: 1e9, per_secs: 1, burst: 1e9, by: 'address' } };
const ten = deciding(routeWith(TEN_RULES.map((rule) => ('rate_limit' in rule ? unlimited : rule))));
const known = deciding(
  routeWith([
    { auth: { token_header: 'x-tunnel-token', basic: { realm: 'tunnel', users: { ann: hashPassword(PASSWORD) } } } },
  ]),
  `Authorization: Basic ${Buffer.from(`ann:${PASSWORD}`).toString('base64')}`,
);
await known();
const token = deciding(
  routeWith([
    { auth: { token_header: 'x-tunnel-token', tokens: [{ name: 'ci', sha256: NODE_DIGESTS.sha256Hex(TOKEN) }] } },
  ]),
  `X-Tunnel-Token: ${TOKEN}`,
);
const sealed = new SealedTexts(LOGIN_SECRETS).seal(
  { purpose: 'login', parts: [HOST, 'operator', LOGIN.issuer, LOGIN.client_id] },
  JSON.stringify({
    sub: '1',
    email: 'ann@example.com',
    emailVerified: true,
    claims: {},
    expiresAt: Math.floor(Date.now() / 1000) + LOGIN.session_secs,
  }),
);
const login = deciding(
  routeWith([{ auth: { token_header: 'x-tunnel-token', login: { domains: ['example.com'] } } }], LOGIN),
  `Cookie: tunnel_login=${sealed}`,
);

const passing = (decide) => (times) => {
  for (let done = 0; done < times; done++) if (decide().kind !== 'pass') throw new Error('it was not let in');
};

export const policyGate = [
  { name: 'policy: the gate, ten rules', run: passing(ten) },
  { name: 'policy: the gate, a password that is known', run: passing(known) },
  { name: 'policy: the gate, a token', run: passing(token) },
  { name: 'policy: the gate, a login cookie', run: passing(login) },
];
