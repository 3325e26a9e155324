// A program walks the whole way to /mcp at a real stack, and every token is tried at every door that it is not for.
import { hash, randomBytes } from 'node:crypto';
import {
  Client,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import type { OauthTokens } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Person, PlatformHarness } from '../conformance/platform/platform-harness.fixture.ts';

const harness = new PlatformHarness();
const CLIENT_ID = `client_${'a'.repeat(20)}`;
const REDIRECT_URI = 'http://127.0.0.1/callback';
/** Of this one run: any port of loopback. */
const RETURNS_TO = 'http://127.0.0.1:33418/callback';
let ann: Person;
let bob: Person;
let server: Record<string, string>;
let resource: string;

beforeAll(async () => {
  await harness.start();
  [ann, bob] = await Promise.all([harness.person(), harness.person()]);
  await harness.db
    .insertInto('oauth_clients')
    .values({ id: CLIENT_ID, name: 'Host', redirect_uris: REDIRECT_URI })
    .execute();
  server = (await harness.get('/.well-known/oauth-authorization-server')).body as Record<string, string>;
  ({ resource } = (await harness.get('/.well-known/oauth-protected-resource/mcp')).body as { resource: string });
});
afterAll(() => harness.close());

const pathOf = (url = ''): string => new URL(url).pathname;

/** What the browser of its user does: where it is led in the end. */
const decide = async (person: Person, query: string): Promise<URL> => {
  const asked = await harness.get(`${pathOf(server['authorization_endpoint'])}${query}`);
  const id = /^\/app\/consent\?request=(\w+)$/.exec(asked.headers.get('location') ?? '')?.[1] ?? '';
  expect([asked.status, id]).toEqual([303, expect.stringMatching(/./)]);
  const decided = await harness.post(`/oauth/requests/${id}/decision`, { allow: true }, person.token);
  const back = new URL((decided.body as { redirect_to: string }).redirect_to);
  expect([back.origin + back.pathname, back.searchParams.get('iss')]).toEqual([RETURNS_TO, server['issuer']]);
  return back;
};

/** From the request to the code. */
const consent = async (person: Person, scope: string): Promise<Record<string, string>> => {
  const verifier = randomBytes(32).toString('base64url');
  const query = new URLSearchParams({
    ...{ response_type: 'code', client_id: CLIENT_ID, redirect_uri: RETURNS_TO, state: 'st', scope, resource },
    ...{ code_challenge: hash('sha256', verifier, 'base64url'), code_challenge_method: 'S256' },
  });
  const back = await decide(person, `?${query.toString()}`);
  expect(back.searchParams.get('state')).toBe('st');
  const code = back.searchParams.get('code') ?? '';
  return {
    ...{ grant_type: 'authorization_code', code, redirect_uri: RETURNS_TO, client_id: CLIENT_ID },
    ...{ code_verifier: verifier, resource },
  };
};

const token = async (form: Record<string, string>): Promise<[number, OauthTokens & { error?: string }]> => {
  const path = pathOf(server['token_endpoint']);
  const answer = await fetch(harness.url + path, { method: 'POST', body: new URLSearchParams(form) });
  return [answer.status, (await answer.json()) as OauthTokens];
};

const connect = async (person: Person, scope: string): Promise<OauthTokens> =>
  (await token(await consent(person, scope)))[1];

const refreshed = (refresh_token: string) =>
  token({ grant_type: 'refresh_token', refresh_token, client_id: CLIENT_ID });

const mcp = async (bearer: string, method: string, params: object = {}) => {
  const answer = await fetch(harness.url + pathOf(resource), {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${bearer}`,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  return { status: answer.status, challenge: answer.headers.get('www-authenticate') ?? '', text: await answer.text() };
};

const toolsOf = ({ text }: { readonly text: string }): string[] =>
  [...text.matchAll(/"name":"([a-z]+_[a-z_]+)"/g)].map(([, name]) => name ?? '').sort();

/** As a host of models has it: what it keeps, and the browser that it opens. */
class ModelHost {
  tokens: StoredOAuthTokens | undefined;
  /** Where the browser was led; null: none was opened. */
  back: URL | null = null;
  readonly #provider: OAuthClientProvider;

  constructor(person: Person) {
    let [verifier, discovered]: [string, OAuthDiscoveryState | undefined] = ['', undefined];
    this.#provider = {
      redirectUrl: RETURNS_TO,
      clientMetadata: { redirect_uris: [RETURNS_TO], token_endpoint_auth_method: 'none' },
      clientInformation: () => ({ client_id: CLIENT_ID }),
      tokens: () => this.tokens,
      saveTokens: (tokens) => void (this.tokens = tokens),
      codeVerifier: () => verifier,
      saveCodeVerifier: (made) => void (verifier = made),
      discoveryState: () => discovered,
      saveDiscoveryState: (state) => void (discovered = state),
      redirectToAuthorization: async ({ search }) => void (this.back = await decide(person, search)),
    };
  }

  /** Does it at once, or after its user was asked. */
  async withClient<T>(work: (client: Client) => Promise<T>): Promise<T> {
    // Links of this stack name the port of the configuration; it listens on any.
    const here = (url: string | URL, init?: RequestInit): Promise<Response> =>
      fetch(String(url).replace(server['issuer'] ?? '', harness.url), init);
    const transport = new StreamableHTTPClientTransport(new URL(resource), {
      ...{ authProvider: this.#provider, fetch: here },
    });
    const client = new Client({ name: 'host', version: '1' });
    const askedBefore = this.back;
    try {
      await client.connect(transport);
      return await work(client);
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || this.back === null || this.back === askedBefore) throw error;
      await transport.finishAuth(this.back.searchParams);
      return await this.withClient(work);
    } finally {
      await client.close();
    }
  }
}

describe('a program at /mcp', () => {
  it('that is written with the SDK is connected, comes back with its refresh token, and asks for more when it needs it', async () => {
    const host = new ModelHost(ann);
    const { tools } = await host.withClient((client) => client.listTools());
    expect(tools.map(({ name }) => name)).toContain('list_tunnels');
    expect(host.back?.searchParams.get('code')).toEqual(expect.any(String));
    const { tokens } = host;
    // As after 15 minutes.
    host.tokens = { ...(tokens ?? { token_type: 'Bearer' }), access_token: 'run-out' };
    host.back = null;
    const status = await host.withClient((client) => client.callTool({ name: 'get_status', arguments: {} }));
    expect([status.isError === true, host.back, host.tokens.scope]).toEqual([false, null, 'tunnels:read']);
    expect(host.tokens.refresh_token).not.toBe(tokens?.refresh_token);
    const close = { name: 'close_tunnel', arguments: { tunnel: 'tun_unknown' } };
    const closed = await host.withClient((client) => client.callTool(close));
    expect([JSON.stringify(closed.content), host.tokens.scope]).toEqual([
      expect.stringContaining('TUNNEL_UNKNOWN'),
      'tunnels:read tunnels:close',
    ]);
  });

  it('sees the tools of its scopes, is told which scope another needs, and gets it by a new consent', async () => {
    const { access_token, scope } = await connect(ann, 'tunnels:read');
    expect(scope).toBe('tunnels:read');
    const listed = await mcp(access_token, 'tools/list');
    expect([listed.status, toolsOf(listed)]).toEqual([200, expect.arrayContaining(['get_status', 'list_tunnels'])]);
    expect(toolsOf(listed)).not.toContain('close_tunnel');
    const call = { name: 'close_tunnel', arguments: { tunnel: 'tun_unknown' } };
    const refused = await mcp(access_token, 'tools/call', call);
    expect([refused.status, refused.challenge]).toEqual([403, expect.stringContaining('insufficient_scope')]);
    expect(refused.challenge).toContain('tunnels:close');
    const more = await connect(ann, 'tunnels:read tunnels:close');
    const tried = await mcp(more.access_token, 'tools/call', call);
    expect([tried.status, tried.text]).toEqual([200, expect.stringContaining('TUNNEL_UNKNOWN')]);
  });

  it('gets in with the token of a log-in or a refresh token nowhere, nor elsewhere with its own', async () => {
    const { access_token, refresh_token } = await connect(ann, 'tunnels:read');
    for (const bearer of [ann.token, refresh_token, 'x']) {
      const { status, challenge } = await mcp(bearer, 'tools/list');
      expect([status, challenge]).toEqual([401, expect.stringContaining('error="invalid_token"')]);
      expect(challenge).toContain('/.well-known/oauth-protected-resource/mcp"');
    }
    for (const path of ['/auth/me', '/usage', '/keys', '/billing', '/oauth/grants', '/load-balancing/groups']) {
      const answer = await harness.get(path, access_token);
      expect([path, answer.status, answer.code]).toEqual([path, 401, 'ACCESS_TOKEN_INVALID']);
    }
    expect((await mcp(access_token, 'tools/list')).status).toBe(200);
  });

  it('is out when its code comes twice', async () => {
    const form = await consent(ann, 'tunnels:read');
    const [, { access_token, refresh_token }] = await token(form);
    expect((await mcp(access_token, 'tools/list')).status).toBe(200);
    expect(await token(form)).toEqual([400, expect.objectContaining({ error: 'invalid_grant' })]);
    expect((await mcp(access_token, 'tools/list')).status).toBe(401);
    expect((await refreshed(refresh_token))[0]).toBe(400);
  });

  it('is out within 2 s when its user disconnects it, and nobody else can', async () => {
    const { refresh_token } = await connect(ann, 'requests:read');
    const [, { access_token }] = await refreshed(refresh_token);
    expect((await mcp(access_token, 'tools/list')).status).toBe(200);
    const { grants } = (await harness.get('/oauth/grants', ann.token)).body as { grants: { id: string }[] };
    const id = grants[0]?.id ?? '';
    expect((await harness.get('/oauth/grants', bob.token)).body).toEqual({ grants: [] });
    expect((await harness.ask('DELETE', `/oauth/grants/${id}`, { token: bob.token })).status).toBe(404);
    expect((await harness.ask('DELETE', `/oauth/grants/${id}`, { token: ann.token })).status).toBe(204);
    await eventually(async () => expect((await mcp(access_token, 'tools/list')).status).toBe(401), {
      timeoutMs: 20_000,
    });
  });

  it('is told that the account is suspended', async () => {
    const { access_token, refresh_token } = await connect(bob, 'tunnels:read');
    expect((await mcp(access_token, 'tools/list')).status).toBe(200);
    await harness.suspend(bob.email);
    await eventually(async () => expect((await mcp(access_token, 'tools/list')).status).toBe(403), {
      timeoutMs: 20_000,
    });
    expect(await refreshed(refresh_token)).toEqual([400, expect.objectContaining({ error: 'invalid_grant' })]);
  });
});
