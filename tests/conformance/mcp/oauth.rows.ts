// The OAuth authorization server: its metadata, routes, answers and errors.
import { eventually } from '@tunnel/testkit';
import { beforeAll, expect, it } from 'vitest';
import { startWeb } from '../../system/http-tunnels.fixture.ts';
import { refusalOf } from '../platform/api-request.fixture.ts';
import { PATIENCE_MS, type Person } from '../platform/platform-harness.fixture.ts';
import { type McpHarness, RETURNS_TO } from './mcp-harness.fixture.ts';
import { row } from './rows.fixture.ts';

const SCOPES = ['tunnels:read', 'requests:read', 'requests:replay', 'tunnels:close'];

export const oauthRows = (harness: McpHarness): void => {
  let ann: Person;
  beforeAll(async () => {
    ann = await harness.person();
  });
  const admitted = async (bearer: string): Promise<number> =>
    (await harness.mcp(bearer, { method: 'tools/list' })).status;

  it(row('OAuth', 1), async () => {
    for (const path of ['/mcp', '']) {
      const { body, headers } = await harness.get(`/.well-known/oauth-protected-resource${path}`);
      expect(headers.get('access-control-allow-origin')).toBe('*');
      expect(body).toEqual({
        resource: `${harness.issuer}/mcp`,
        authorization_servers: [harness.issuer],
        scopes_supported: SCOPES,
        bearer_methods_supported: ['header'],
        resource_name: expect.any(String),
      });
    }
  });

  it(row('OAuth', 2), async () => {
    const { body, headers } = await harness.get('/.well-known/oauth-authorization-server');
    const { issuer } = harness;
    expect(issuer).not.toMatch(/\/$/);
    expect(body).toEqual({
      issuer,
      authorization_endpoint: `${issuer}/oauth/authorize`,
      token_endpoint: `${issuer}/oauth/token`,
      revocation_endpoint: `${issuer}/oauth/revoke`,
      jwks_uri: `${issuer}/.well-known/jwks.json`,
      response_types_supported: ['code'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none'],
      client_id_metadata_document_supported: true,
      authorization_response_iss_parameter_supported: true,
      scopes_supported: SCOPES,
    });
    const jwks = await harness.get('/.well-known/jwks.json');
    expect([headers, jwks.headers].map((of) => of.get('access-control-allow-origin'))).toEqual(['*', '*']);
  });

  it(row('OAuth', 3), async () => {
    for (const fields of [
      { client_id: 'client_unknown' },
      { client_id: '' },
      { client_id: 'https://example.com' },
      { redirect_uri: 'https://elsewhere.example/callback' },
      { redirect_uri: 'javascript:alert(1)' },
      { redirect_uri: `${RETURNS_TO}/more` },
      { redirect_uri: '' },
    ]) {
      const page = await harness.authorize(harness.asking(fields).query);
      const asked = JSON.stringify(fields);
      expect([asked, page.status, page.headers.get('location')]).toEqual([asked, 400, null]);
      expect(page.headers.get('content-type')).toMatch(/^text\/html/);
    }
    for (const [fields, error] of [
      [{ response_type: 'token' }, 'unsupported_response_type'],
      [{ code_challenge: '' }, 'invalid_request'],
      [{ code_challenge_method: 'plain' }, 'invalid_request'],
      [{ scope: 'tunnels:read everything' }, 'invalid_scope'],
      [{ resource: '' }, 'invalid_target'],
      [{ resource: 'https://elsewhere.example/mcp' }, 'invalid_target'],
    ] as const) {
      const { status, headers } = await harness.authorize(harness.asking(fields).query);
      const back = new URL(headers.get('location') ?? '', 'http://nowhere');
      expect([status, back.origin + back.pathname]).toEqual([303, RETURNS_TO]);
      const said = ['error', 'state', 'iss', 'code'].map((name) => back.searchParams.get(name));
      expect(said).toEqual([error, 'st', harness.issuer, null]);
    }
    const { query } = harness.asking();
    expect((await harness.get(`/oauth/requests/${await harness.requestOf(query)}`, ann.token)).body).toMatchObject({
      scopes: ['tunnels:read'],
    });
  });

  it(row('OAuth', 4), async () => {
    let origin = '';
    const good = (path: string, more: object = {}): string =>
      JSON.stringify({ client_id: origin + path, client_name: 'App', redirect_uris: [RETURNS_TO], ...more });
    const documents: Record<string, (path: string) => [number, string]> = {
      '/redirects': () => [302, ''],
      '/absent': () => [404, '{}'],
      '/no-json': () => [200, '<html>'],
      '/large': (path) => [200, good(path, { padding: 'x'.repeat(64 * 1024) })],
      '/other-id': () => [200, good('/good')],
      '/no-uris': (path) => [200, good(path, { redirect_uris: undefined })],
      '/script': (path) => [200, good(path, { redirect_uris: [RETURNS_TO, 'javascript:alert(1)'] })],
      '/own-scheme': (path) => [200, good(path, { redirect_uris: [RETURNS_TO, 'app://callback'] })],
      '/plain-http': (path) => [200, good(path, { redirect_uris: [RETURNS_TO, 'http://app.example/callback'] })],
      '/fragment': (path) => [200, good(path, { redirect_uris: [`${RETURNS_TO}#here`] })],
    };
    const { port } = harness.use(
      await startWeb((request, response) => {
        const path = request.url ?? '';
        const [status, body] = documents[path]?.(path) ?? [200, good(path)];
        response.writeHead(status, { 'content-type': 'application/json', location: `${origin}/good` }).end(body);
      }),
    );
    origin = `http://127.0.0.1:${port}`;
    const asked = (path: string) => harness.authorize(harness.asking({ client_id: origin + path }).query);
    const reasons = new Set<string>();
    for (const path of Object.keys(documents)) {
      const { status, headers, text } = await asked(path);
      expect([path, status, headers.get('location')]).toEqual([path, 400, null]);
      reasons.add(/<p>(.*?)<\/p>/.exec(text)?.[1] ?? '');
    }
    // Each kind of faulty app gets a specific reason.
    expect(reasons.size).toBeGreaterThan(7);
    const { status, headers } = await asked('/good');
    expect([status, headers.get('location')]).toEqual([303, expect.stringContaining('/app/consent?request=')]);
  });

  it(row('OAuth', 5), async () => {
    const id = await harness.requestOf(harness.asking({ scope: 'tunnels:read requests:read' }).query);
    const path = `/oauth/requests/${id}`;
    expect((await harness.get(path)).status).toBe(401);
    expect((await harness.get(path, ann.token)).body).toEqual({
      id,
      client_id: harness.clientId,
      client_host: expect.any(String),
      client_name: 'Host',
      redirect_host: '127.0.0.1:33418',
      scopes: ['tunnels:read', 'requests:read'],
      expires_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    });
    expect((await harness.get('/oauth/requests/ask_unknown', ann.token)).status).toBe(404);
  });

  it(row('OAuth', 6), async () => {
    const scope = 'tunnels:read requests:read';
    const id = await harness.requestOf(harness.asking({ scope }).query);
    const decide = (decision: object, token?: string) =>
      harness.post(`/oauth/requests/${id}/decision`, decision, token);
    expect((await decide({ allow: true })).status).toBe(401);
    for (const odd of [{ allow: true, scopes: [] }, { allow: true, scopes: ['tunnels:close'] }, { scopes: [] }, {}]) {
      expect(refusalOf(await decide(odd, ann.token))).toEqual([400, 'API_BAD_REQUEST']);
    }
    const allowed = await decide({ allow: true, scopes: ['requests:read'] }, ann.token);
    expect([allowed.status, Object.keys(allowed.body as object)]).toEqual([200, ['redirect_to']]);
    expect((await decide({ allow: true }, ann.token)).status).toBe(404);
    expect((await harness.get(`/oauth/requests/${id}`, ann.token)).status).toBe(404);
    const denied = await harness.decide(ann, harness.asking().query, { allow: false });
    expect(['error', 'state', 'code'].map((name) => denied.searchParams.get(name))).toEqual([
      'access_denied',
      'st',
      null,
    ]);
  });

  it(row('OAuth', 7), async () => {
    for (const [fields, error] of [
      [{ code_verifier: 'x'.repeat(43) }, 'invalid_grant'],
      [{ redirect_uri: 'http://127.0.0.1:1/callback' }, 'invalid_grant'],
      [{ client_id: 'client_unknown' }, 'invalid_grant'],
      [{ code: 'unknown' }, 'invalid_grant'],
      [{ code: '' }, 'invalid_request'],
      [{ grant_type: 'password' }, 'unsupported_grant_type'],
      [{ grant_type: 'refresh_token', refresh_token: 'unknown' }, 'invalid_grant'],
    ] as const) {
      const [status, said] = await harness.token({ ...(await harness.consent(ann, 'tunnels:read')), ...fields });
      expect([status, said]).toEqual([400, { error, error_description: expect.any(String) }]);
    }
    const form = await harness.consent(ann, 'tunnels:read requests:read');
    const answer = await harness.form('/oauth/token', form);
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const tokens = (await answer.json()) as { access_token: string; refresh_token: string };
    expect(tokens).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: 900,
      refresh_token: expect.any(String),
      scope: 'tunnels:read requests:read',
    });
    const [, claims] = tokens.access_token.split('.').map((part) => Buffer.from(part, 'base64url').toString());
    expect(JSON.parse(claims ?? '')).toMatchObject({ aud: harness.resource, client_id: harness.clientId });
    const fields = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token, client_id: harness.clientId };
    const [, fewer] = await harness.token({ ...fields, scope: 'requests:read' });
    expect([fewer.scope, fewer.refresh_token === tokens.refresh_token]).toEqual(['requests:read', false]);
    expect(await admitted(fewer.access_token)).toBe(200);
    expect(await harness.token(form)).toEqual([400, expect.objectContaining({ error: 'invalid_grant' })]);
    await eventually(async () => expect(await admitted(fewer.access_token)).toBe(401), { timeoutMs: PATIENCE_MS });
    expect((await harness.refreshed(fewer.refresh_token))[0]).toBe(400);
  });

  it(row('OAuth', 8), async () => {
    expect((await harness.form('/oauth/revoke', { token: 'unknown' })).status).toBe(200);
    const { access_token, refresh_token } = await harness.connected(ann, 'tunnels:read');
    expect(await admitted(access_token)).toBe(200);
    const shown = { token: refresh_token, client_id: harness.clientId };
    expect((await harness.form('/oauth/revoke', shown)).status).toBe(200);
    await eventually(async () => expect(await admitted(access_token)).toBe(401), { timeoutMs: PATIENCE_MS });
    expect((await harness.refreshed(refresh_token))[0]).toBe(400);
  });

  it(row('OAuth', 9), async () => {
    const [own, bob] = await Promise.all([harness.person(), harness.person()]);
    const { access_token } = await harness.connected(own, 'requests:read');
    expect(await admitted(access_token)).toBe(200);
    const { grants } = (await harness.get('/oauth/grants', own.token)).body as { grants: { id: string }[] };
    expect(grants).toEqual([
      {
        id: expect.any(String),
        client_id: harness.clientId,
        client_host: expect.any(String),
        client_name: 'Host',
        scopes: ['requests:read'],
        created_at: expect.any(String),
        last_used_at: expect.any(String),
      },
    ]);
    expect((await harness.get('/oauth/grants', bob.token)).body).toEqual({ grants: [] });
    const remove = ({ token }: Person) => harness.ask('DELETE', `/oauth/grants/${grants[0]?.id}`, { token });
    expect((await remove(bob)).status).toBe(404);
    expect((await remove(own)).status).toBe(204);
    await eventually(async () => expect(await admitted(access_token)).toBe(401), { timeoutMs: PATIENCE_MS });
    expect((await remove(own)).status).toBe(404);
  });
};
