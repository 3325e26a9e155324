// The identity provider for sign-ins and JWTs in the bench: runs in this process on the loopback interface, signs every request and asks
// for no password.
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { createServer } from 'node:http';

const KEY_ID = 'bench';
const EMAIL = 'ann@example.com';
export const CLIENT_ID = 'bench';
export const AUDIENCE = 'bench-api';
/** Lifetime of tokens, longer than any run. */
const LIFE_SECS = 86_400;

let started = null;

/** Returns the provider of the whole run, which keeps no process running. @returns {Promise<{ issuer: string, token(claims: object): string }>} */
export function identityProvider() {
  started ??= start();
  return started;
}

async function start() {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const keys = [{ ...publicKey.export({ format: 'jwk' }), kid: KEY_ID, alg: 'RS256', use: 'sig' }];
  const codes = new Map();
  const server = createServer((request, response) => {
    answer({ request, response, keys, codes, provider }).catch((error) => response.destroy(error));
  });
  const provider = { issuer: '', token: (claims) => signed(privateKey, provider.issuer, claims) };
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  provider.issuer = `http://127.0.0.1:${server.address().port}`;
  return provider;
}

function signed(privateKey, issuer, claims) {
  const now = Math.floor(Date.now() / 1000);
  const parts = [
    { alg: 'RS256', typ: 'JWT', kid: KEY_ID },
    { iss: issuer, sub: 'ann', iat: now, exp: now + LIFE_SECS, ...claims },
  ];
  const text = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`;
}

async function answer({ request, response, keys, codes, provider }) {
  const url = new URL(request.url, provider.issuer);
  const json = (body) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  if (url.pathname === '/.well-known/openid-configuration') return json(metadata(provider.issuer));
  if (url.pathname === '/jwks') return json({ keys });
  if (url.pathname === '/authorize') {
    const { redirect_uri, state, nonce, code_challenge } = Object.fromEntries(url.searchParams);
    const code = randomBytes(16).toString('hex');
    codes.set(code, { nonce, code_challenge });
    const back = new URL(redirect_uri);
    back.searchParams.set('code', code);
    back.searchParams.set('state', state);
    return response.writeHead(302, { location: back.href }).end();
  }
  if (url.pathname === '/token') return json(await redeem(request, codes, provider));
  return response.writeHead(404).end();
}

async function redeem(request, codes, provider) {
  let text = '';
  for await (const piece of request) text += piece;
  const form = new URLSearchParams(text);
  const known = codes.get(form.get('code'));
  codes.delete(form.get('code'));
  const challenge = createHash('sha256').update(form.get('code_verifier')).digest('base64url');
  if (known?.code_challenge !== challenge) throw new Error('a code that was not given, or another verifier');
  const idToken = provider.token({ aud: CLIENT_ID, nonce: known.nonce, email: EMAIL, email_verified: true });
  return { access_token: 'none', token_type: 'Bearer', expires_in: LIFE_SECS, id_token: idToken };
}

const metadata = (issuer) => ({
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/jwks`,
  response_types_supported: ['code'],
  subject_types_supported: ['public'],
  id_token_signing_alg_values_supported: ['RS256'],
  code_challenge_methods_supported: ['S256'],
  token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
});
