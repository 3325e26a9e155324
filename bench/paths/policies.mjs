// The measured policies, and the request headers with which a visitor passes them. Each has text(), the policy file or null for no rules,
// and visitor(address), the header lines once edge and client are running.
import { request } from 'node:http';
import { AUDIENCE, CLIENT_ID, identityProvider } from '../lib/identity-provider.mjs';
import { HTTP_HOST } from '../lib/wrk.mjs';

const NOBODY = async () => [];

/** Ten rules that the load's requests pass, each with its work: lists, paths, a limit that is not reached, headers, CORS. */
const TEN_RULES = `
rules:
  - { match: { address: [203.0.113.0/24, 198.51.100.0/24, "2001:db8::/32"] }, deny: true }
  - { allow_addresses: [127.0.0.0/8, 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, "::1"] }
  - { match: { path: /admin/** }, deny: 404 }
  - { match: { path: [/internal/**, /debug/**] }, deny: true }
  - { match: { path: /old/** }, redirect: { to: "/new{path}" } }
  - { match: { method: [POST, PUT], path: /upload/** }, max_body: 10MiB }
  - { rate_limit: { requests: 1000000, per_secs: 1 } }
  - { request_headers: { set: { X-Env: bench, X-Visitor: "{address}" } } }
  - { response_headers: { set: { X-Frame-Options: DENY }, remove: [Server] } }
  - { cors: { origins: ["https://app.example.com"] } }
`;

const PASSWORD = 'a password of the bench';
const TOKEN = 'a-token-of-the-bench-for-one-run-alone';

const NO_RULES = async () => null;

const BASIC = async () => [`Authorization: Basic ${Buffer.from(`ann:${PASSWORD}`).toString('base64')}`];
const TOKEN_LINE = async () => [`X-Tunnel-Token: ${TOKEN}`];
const BEARER = async () => [`Authorization: Bearer ${(await identityProvider()).token({ aud: AUDIENCE })}`];
/** A cookie as long as a sign-in cookie, but without a session. */
const SOME_COOKIE = async () => [`Cookie: tunnel_other=${'c'.repeat(LOGIN_CHARS)}`];
const LOGIN_CHARS = 200;

export const POLICIES = {
  // Baselines for authenticated visitors: the same requests without a policy that checks them.
  'ours-open-basic': { text: NO_RULES, visitor: BASIC },
  'ours-open-token': { text: NO_RULES, visitor: TOKEN_LINE },
  'ours-open-jwt': { text: NO_RULES, visitor: BEARER },
  'ours-open-login': { text: NO_RULES, visitor: SOME_COOKIE },
  'ours-policy-10': { text: async () => TEN_RULES, visitor: NOBODY },
  'ours-basic': {
    text: async () => `rules: [{ auth: { basic: { users: { ann: "${PASSWORD}" } } } }]\n`,
    visitor: BASIC,
  },
  'ours-token': {
    text: async () => `rules: [{ auth: { tokens: [{ name: ci, token: "${TOKEN}" }] } }]\n`,
    visitor: TOKEN_LINE,
  },
  'ours-jwt': {
    text: async () => {
      const { issuer } = await identityProvider();
      const jwt = `{ issuer: "${issuer}", audience: ${AUDIENCE}, jwks_url: "${issuer}/jwks" }`;
      return `rules: [{ auth: { jwt: ${jwt} } }]\n`;
    },
    visitor: BEARER,
  },
  'ours-login': {
    text: async () => {
      const { issuer } = await identityProvider();
      const login = `{ issuer: "${issuer}", client_id: ${CLIENT_ID}, client_secret: a-secret-of-the-bench }`;
      return `login: ${login}\nrules: [{ auth: { login: { domains: [example.com] } } }]\n`;
    },
    visitor: async (address) => [`Cookie: ${await logIn(address)}`],
  },
};

/** Signs in like a browser, and returns the resulting cookie: to the identity provider, and back with its code. */
async function logIn(address) {
  const begun = await ask(address, '/', {});
  const atProvider = await fetch(begun.location, { redirect: 'manual' });
  const back = new URL(atProvider.headers.get('location'));
  const finished = await ask(address, back.pathname + back.search, { cookie: cookiesOf(begun) });
  const session = cookiesOf(finished)
    .split('; ')
    .find((cookie) => /^(?:__Host-)?tunnel_login=./.test(cookie));
  if (session === undefined) throw new Error(`the login gave no cookie: it was answered with ${finished.status}`);
  return session;
}

const cookiesOf = ({ setCookies }) => setCookies.map((line) => line.split(';')[0]).join('; ');

function ask({ host, port }, path, headers) {
  return new Promise((resolve, reject) => {
    const named = { host: `${HTTP_HOST}:${port}`, accept: 'text/html', ...headers };
    const sent = request({ host, port, path, headers: named, agent: false }, (response) => {
      response.resume();
      const { location, 'set-cookie': setCookies = [] } = response.headers;
      response.once('end', () => resolve({ status: response.statusCode, location, setCookies }));
    });
    sent.once('error', reject).end();
  });
}
