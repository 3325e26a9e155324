// A hand-written OpenID provider that misbehaves on demand: late, huge or redirected responses, and tokens with a single error.
import { createHash, createHmac, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type CryptoKey,
  exportJWK,
  type GenerateKeyPairResult,
  generateKeyPair,
  importJWK,
  type JWK,
  SignJWT,
} from 'jose';

type Endpoint = 'metadata' | 'keys' | 'token' | 'userinfo';

interface SigningKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
}

/** An authorization code given to a browser, with the values of the login. */
interface IssuedCode {
  readonly challenge: string;
  readonly nonce: string;
  readonly redirectUri: string;
}

export interface OddProviderOptions {
  readonly now: () => number;
  readonly clientId?: string;
  readonly clientSecret?: string;
}

const PATHS: Readonly<Record<string, Endpoint>> = {
  '/.well-known/openid-configuration': 'metadata',
  '/keys': 'keys',
  '/token': 'token',
  '/userinfo': 'userinfo',
};

export class OddProvider {
  /** Number of requests per endpoint. */
  readonly asked: Record<Endpoint, number> = { metadata: 0, keys: 0, token: 0, userinfo: 0 };
  /** Endpoints that misbehave, with the kind of misbehavior. */
  readonly odd: Partial<Record<Endpoint, 'late' | 'huge' | 'redirect' | 'broken' | 'not-json'>> = {};
  /** Path prefix of the endpoints. */
  folder = '';
  /** Fields to override in the published metadata. */
  metadata: Record<string, unknown> = {};
  claims: Record<string, unknown> = {};
  userInfo: Record<string, unknown> = {};
  /** Whether the user info is a JWT, and how the JWT is signed. */
  userInfoSigning: 'not' | 'good' | 'unpublished-key' | 'none' = 'not';
  besideKeys: Record<string, unknown> = {};
  /** How the ID token is signed. */
  signing: 'good' | 'none' | 'hmac' | 'unpublished-key' = 'good';
  readonly clientId: string;
  readonly clientSecret: string;
  readonly #now: () => number;
  readonly #codes = new Map<string, IssuedCode>();
  readonly #server: Server;
  readonly #held = new Set<ServerResponse>();
  #keys: SigningKey[] = [];

  private constructor({ now, clientId = 'edge', clientSecret = 'client-secret-of-the-edge' }: OddProviderOptions) {
    this.#now = now;
    this.clientId = clientId;
    this.clientSecret = clientSecret;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(options: OddProviderOptions): Promise<OddProvider> {
    const provider = new OddProvider(options);
    await provider.changeKeys();
    await new Promise<void>((resolve) => provider.#server.listen(0, '127.0.0.1', resolve));
    return provider;
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Replaces the published keys with new keys. Tokens are signed with the first key. */
  async changeKeys(algorithms: readonly string[] = ['ES256']): Promise<void> {
    this.#keys = await Promise.all(algorithms.map(newKey));
  }

  /** Signs in like a browser. Returns the redirect URI and the query with which the provider sends the browser back. */
  signIn(location: string): { readonly redirectUri: string; readonly query: string } {
    const { searchParams } = new URL(location);
    const value = (name: string): string => searchParams.get(name) ?? '';
    const code = randomBytes(8).toString('hex');
    const redirectUri = value('redirect_uri');
    this.#codes.set(code, { challenge: value('code_challenge'), nonce: value('nonce'), redirectUri });
    return { redirectUri, query: `?${new URLSearchParams({ code, state: value('state') }).toString()}` };
  }

  /** Creates a token for programs, signed with the first key by default. */
  async token(claims: Record<string, unknown>, header: Record<string, unknown> = {}, at = 0): Promise<string> {
    const key = this.#keys[at];
    if (key === undefined) throw new Error('no such key');
    return new SignJWT(claims).setProtectedHeader({ alg: key.alg, kid: key.kid, ...header }).sign(key.privateKey);
  }

  async stop(): Promise<void> {
    for (const response of this.#held) response.destroy();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const endpoint = PATHS[(request.url ?? '').slice(this.folder.length)];
    if (endpoint === undefined) return void response.writeHead(404).end();
    this.asked[endpoint] += 1;
    const body = await textOf(request);
    const odd = this.odd[endpoint];
    if (odd === 'late') return void this.#held.add(response);
    if (odd === 'huge') return void response.writeHead(200, JSON_TYPE).end(Buffer.alloc(5_000_000, 0x20));
    if (odd === 'redirect') return void response.writeHead(302, { location: `${this.issuer}/elsewhere` }).end();
    if (odd === 'broken') return void response.writeHead(500).end('s3cret of the provider');
    if (odd === 'not-json') return void response.writeHead(200, JSON_TYPE).end('<html>');
    if (endpoint === 'userinfo' && this.userInfoSigning !== 'not') {
      const signed = await this.#signed(this.userInfo, this.userInfoSigning);
      return void response.writeHead(200, { 'content-type': 'application/jwt; charset=utf-8' }).end(signed);
    }
    const [status, answer] = await this.#wordsOf(endpoint, body);
    response.writeHead(status, JSON_TYPE).end(JSON.stringify(answer));
  }

  async #wordsOf(endpoint: Endpoint, body: string): Promise<readonly [number, object]> {
    const { issuer } = this;
    switch (endpoint) {
      case 'metadata': {
        const at = (path: string): string => `${issuer}${path}`;
        const endpoints = {
          authorization_endpoint: at('/authorize?from=edge'),
          token_endpoint: at('/token'),
          jwks_uri: at('/keys'),
        };
        return [
          200,
          { issuer, ...endpoints, id_token_signing_alg_values_supported: ['RS256', 'ES256'], ...this.metadata },
        ];
      }
      case 'keys':
        return [200, { keys: this.#keys.map(({ jwk }) => jwk), ...this.besideKeys }];
      case 'token':
        return this.#tokenFor(new URLSearchParams(body));
      case 'userinfo':
        return [200, this.userInfo];
    }
  }

  async #tokenFor(form: URLSearchParams): Promise<readonly [number, object]> {
    const code = form.get('code') ?? '';
    const issued = this.#codes.get(code);
    this.#codes.delete(code);
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    if (issued === undefined || issued.challenge !== challenge || issued.redirectUri !== form.get('redirect_uri')) {
      return [400, { error: 'invalid_grant' }];
    }
    return [200, { access_token: 'access', token_type: 'Bearer', id_token: await this.#idToken(issued.nonce) }];
  }

  async #idToken(nonce: string): Promise<string> {
    const now = Math.floor(this.#now() / 1000);
    const usual = { iss: this.issuer, aud: this.clientId, sub: 'u1', email: 'ann@example.com', email_verified: true };
    return this.#signed({ ...usual, nonce, iat: now, exp: now + 300, ...this.claims }, this.signing);
  }

  async #signed(
    claims: Record<string, unknown>,
    signing: 'good' | 'none' | 'hmac' | 'unpublished-key',
  ): Promise<string> {
    if (signing === 'none') return `${part({ alg: 'none' })}.${part(claims)}.`;
    if (signing === 'hmac') {
      const text = `${part({ alg: 'HS256' })}.${part(claims)}`;
      return `${text}.${createHmac('sha256', this.clientSecret).update(text).digest('base64url')}`;
    }
    if (signing === 'unpublished-key') {
      const stranger = await newKey('ES256');
      const kid = this.#keys[0]?.kid ?? '';
      return new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid }).sign(stranger.privateKey);
    }
    return this.token(claims);
  }
}

const JSON_TYPE = { 'content-type': 'application/json' };

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

const newKey = async (alg: string): Promise<SigningKey> => {
  const { publicKey, privateKey } = await (/^[RP]S/.test(alg) ? rsaKeyPair(alg) : newKeyPair(alg));
  const kid = randomBytes(4).toString('hex');
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
};

const newKeyPair = (alg: string) => generateKeyPair(alg, { extractable: true });

/** All RSA algorithms share a key: generating an RSA key takes up to two seconds. */
let rsaKey: Promise<{ readonly secret: JWK; readonly open: JWK }> | undefined;

const rsaKeyPair = async (alg: string): Promise<GenerateKeyPairResult> => {
  rsaKey ??= newKeyPair('RS256').then(async ({ publicKey, privateKey }) => ({
    secret: await exportJWK(privateKey),
    open: await exportJWK(publicKey),
  }));
  const { secret, open } = await rsaKey;
  const [privateKey, publicKey] = await Promise.all([
    importJWK({ ...secret, alg, ext: true }, alg),
    importJWK({ ...open, alg, ext: true }, alg),
  ]);
  return { privateKey: privateKey as CryptoKey, publicKey: publicKey as CryptoKey };
};

const textOf = async (request: IncomingMessage): Promise<string> => {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
};
