import { hash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type OauthDecided, type OauthRequest, oauthRequest } from '@tunnel/contract';
import { problemOfAddress } from '@tunnel/rules/net';
import { createGuardedFetch, randomToken } from '@tunnel/runtime';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OAUTH_REQUEST_MS, OAUTH_REQUESTS_MAX } from '../../../services/oauth/authorize.ts';
import { ClientDocuments } from '../../../services/oauth/client-documents.ts';
import { createOauthClient, listOauthClients, revokeOauthClient } from '../../../services/oauth/clients.ts';
import { OAUTH_CODE_MS, OAUTH_GRANTS_PER_ACCOUNT_MAX } from '../../../services/oauth/decide-request.ts';
import { oauthAddresses } from '../../../services/oauth/oauth-addresses.ts';
import { KNOWN_USER_MS } from '../../../services/shared/recent-lookups.ts';
import { sortedStatuses } from '../../auth/accounts.fixture.ts';
import { AttemptLimits } from '../../auth/attempt-limits.ts';
import { type OauthFixture, openOauth, RESOURCE } from './oauth.fixture.ts';
import { addOauthConsentRoutes } from './oauth-consent-routes.ts';

const ISSUER = 'http://localhost:8080';
const REDIRECT_URI = 'http://127.0.0.1:49152/cb?x=1';
const OPERATOR = { kind: 'operator', name: 'root' } as const;
const EMAIL = 'ann@example.com';

let fixture: OauthFixture;
let site: Server;
let clientId: string;
let bearer: Record<string, string>;

/** Starts the site of a client with a valid document, and a document with a script as redirect URI. */
const startSite = async (): Promise<string> => {
  site = createServer(({ url, headers }, response) => {
    const redirect_uris = url === '/script.json' ? ['javascript:alert(1)//<b>'] : ['http://127.0.0.1/cb?x=1'];
    const client_name = 'Example <b>App</b>';
    response.end(JSON.stringify({ client_id: `http://${headers.host}${url}`, client_name, redirect_uris }));
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
};

beforeAll(async () => {
  clientId = `${await startSite()}/client.json`;
  fixture = await openOauth();
  const { app, context, clock } = fixture.accounts;
  const fetch = createGuardedFetch({ problemOfAddress: (each) => problemOfAddress(each, true), clock });
  addOauthConsentRoutes(app, {
    ...context,
    version: '1',
    addresses: oauthAddresses(ISSUER),
    clientDocuments: new ClientDocuments({ fetch, allowHttp: true, operator: null, clock }),
    limits: new AttemptLimits({ auth_per_minute: 50, auth_per_account_per_minute: 1 }, () => clock.monotonic()),
  });
  await fixture.accounts.signUp(EMAIL);
  ({ bearer } = await fixture.accounts.logIn(EMAIL));
});
afterAll(async () => {
  await fixture.close();
  await new Promise((resolve) => site.close(resolve));
});

const verifier = randomToken(32);

const queryOf = (change: Record<string, string | undefined> = {}): string => {
  const query = new URLSearchParams();
  const all = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: REDIRECT_URI,
    code_challenge: hash('sha256', verifier, 'base64url'),
    code_challenge_method: 'S256',
    resource: RESOURCE,
    scope: 'tunnels:read tunnels:close',
    state: 'st&te',
    ...change,
  };
  for (const [name, value] of Object.entries(all)) if (value !== undefined) query.set(name, value);
  return query.toString();
};

/** Number of networks used so far. Every request comes from a separate network, because attempts are counted per network. */
let networks = 0;
const authorize = (change?: Record<string, string | undefined>): Promise<Response> => {
  networks += 1;
  fixture.accounts.peer = `10.${networks}.0.1`;
  return fixture.accounts.ask('GET', `/oauth/authorize?${queryOf(change)}`);
};

const CONSENT = /^\/app\/consent\?request=(ask_[0-9A-Za-z]{20})$/;

/** Returns the ID of an accepted authorization request. */
const asked = async (change?: Record<string, string | undefined>): Promise<string> => {
  const answer = await authorize(change);
  expect([answer.status, await answer.text()]).toEqual([303, '']);
  return CONSENT.exec(answer.headers.get('location') ?? '')?.[1] ?? '';
};

const show = (id: string): Promise<Response> => fixture.accounts.ask('GET', `/oauth/requests/${id}`, undefined, bearer);
const decide = (id: string, body: unknown): Promise<Response> =>
  fixture.accounts.post(`/oauth/requests/${id}/decision`, body, bearer);
const landing = async (answer: Response): Promise<URL> => {
  expect(answer.status).toBe(200);
  return new URL(((await answer.json()) as OauthDecided).redirect_to);
};
const codeOf = async (answer: Response) => ((await answer.json()) as { code: string }).code;

describe('GET /oauth/authorize', () => {
  it('stores a valid request and redirects to the consent page', async () => {
    const id = await asked();
    const shown = (await (await show(id)).json()) as OauthRequest;
    expect(oauthRequest.parse(shown)).toEqual({
      id,
      client_id: clientId,
      client_host: new URL(clientId).host,
      client_name: 'Example <b>App</b>',
      redirect_host: '127.0.0.1:49152',
      scopes: ['tunnels:read', 'tunnels:close'],
      expires_at: new Date(fixture.accounts.clock.now() + 600_000).toISOString(),
    });
  });

  it.each([
    [{ response_type: 'token' }, 'unsupported_response_type'],
    [{ code_challenge_method: 'plain' }, 'invalid_request'],
    [{ code_challenge: undefined }, 'invalid_request'],
    [{ scope: 'everything' }, 'invalid_scope'],
    [{ resource: undefined }, 'invalid_target'],
    [{ resource: 'https://other.example/mcp' }, 'invalid_target'],
  ])('redirects to the client with the error: %j', async (change, error) => {
    const answer = await authorize(change);
    const to = new URL(answer.headers.get('location') ?? '');
    expect([answer.status, to.origin + to.pathname]).toEqual([303, 'http://127.0.0.1:49152/cb']);
    const { error_description, ...params } = Object.fromEntries(to.searchParams);
    expect(params).toEqual({ x: '1', error, state: 'st&te', iss: ISSUER });
    expect(error_description).toMatch(/^[ -~]+$/);
  });

  it('returns the state to the client even if invalid', async () => {
    const answer = await authorize({ state: 'a\0b' });
    const { searchParams } = new URL(answer.headers.get('location') ?? '');
    expect([searchParams.get('error'), searchParams.get('state')]).toEqual(['invalid_request', 'a\0b']);
  });

  it.each([
    [{ client_id: undefined }, 'The request has no client_id.'],
    [{ client_id: 'client_unknown\0' }, 'The client id is neither an https URL nor a registered client.'],
    [{ client_id: `client_${'0'.repeat(20)}` }, 'The client id is neither an https URL nor a registered client.'],
    [{ client_id: 'http://127.0.0.1:1/' }, 'The client id has no path.'],
    [{ redirect_uri: undefined }, 'The request has no redirect_uri.'],
    [{ redirect_uri: 'javascript:alert(1)' }, 'The redirect_uri is neither https nor http on localhost.'],
    [
      { redirect_uri: 'http://127.0.0.1:49152/other', response_type: 'token' },
      'The redirect_uri is not registered for the client.',
    ],
  ])('shows an error page without a redirect for an untrusted client: %j', async (change, reason) => {
    const answer = await authorize(change);
    expect([answer.status, answer.headers.get('location')]).toEqual([400, null]);
    expect(answer.headers.get('content-type')).toMatch(/^text\/html/);
    expect(answer.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/);
    expect(await answer.text()).toContain(`<p>${reason}</p>`);
  });

  it('escapes HTML of a client in the error page', async () => {
    const answer = await authorize({ client_id: clientId.replace('client.json', 'script.json') });
    expect(answer.status).toBe(400);
    const text = await answer.text();
    expect(text).toContain('javascript:alert(1)//&lt;b&gt;');
    expect(text).not.toContain('<b>');
  });

  it('returns 429 with a page after 50 requests a minute from one network', async () => {
    const answers: Response[] = [];
    const ask = async () => {
      fixture.accounts.peer = '10.255.0.1';
      answers.push(await fixture.accounts.ask('GET', `/oauth/authorize?${queryOf({ scope: 'x' })}`));
    };
    for (let at = 0; at <= 50; at += 1) await ask();
    expect(new Set(answers.slice(0, 50).map(({ status }) => status))).toEqual(new Set([303]));
    const last = answers.at(-1);
    expect([last?.status, Number(last?.headers.get('retry-after')) > 0]).toEqual([429, true]);
    const text = (await last?.text()) ?? '';
    expect([text.includes('Too many attempts'), text.includes('header.')]).toEqual([true, false]);
    expect(text).toContain(`<p>Reload this page in ${last?.headers.get('retry-after')} s.</p>`);
  });

  it('evicts the oldest request over the maximum number of stored requests', async () => {
    const { db } = fixture.accounts.database;
    const id = await asked();
    await sql`
      insert into oauth_requests (id, client_id, client_host, client_name, redirect_uri, code_challenge, resource, scope, expires_at)
      select 'flood' || n, '', '', '', '', '', '', '', ${new Date(fixture.accounts.clock.now() + 600_001)}
      from generate_series(1, ${OAUTH_REQUESTS_MAX - 1}::int) n`.execute(db);
    expect((await show(id)).status).toBe(200);
    await fixture.accounts.clock.advance(10);
    await asked();
    expect((await show(id)).status).toBe(404);
    await sql`delete from oauth_requests where id like 'flood%'`.execute(db);
  });
});

describe('POST /oauth/requests/{id}/decision', () => {
  it('returns 429 for an approval over the daily limit, but always accepts a denial', async () => {
    const { db } = fixture.accounts.database;
    const today = new Date(fixture.accounts.clock.now()).toISOString().slice(0, 10);
    const set = (created_count: number) => db.updateTable('users').set({ created_on: today, created_count }).execute();
    await set(fixture.accounts.context.settings.limits.creating_writes_per_day);
    const id = await asked();
    const answer = await decide(id, { allow: true });
    expect([answer.status, await codeOf(answer)]).toEqual([429, 'API_WRITES_PER_DAY']);
    expect((await decide(id, { allow: false })).status).toBe(200);
    await set(0);
  });

  it('returns a code on approval, which the client redeems with its verifier for the approved scopes', async () => {
    const to = await landing(await decide(await asked(), { allow: true, scopes: ['tunnels:read'] }));
    const { code = '', ...params } = Object.fromEntries(to.searchParams);
    expect([to.origin + to.pathname, params]).toEqual([
      'http://127.0.0.1:49152/cb',
      { x: '1', state: 'st&te', iss: ISSUER },
    ]);
    expect(code).toMatch(/^[\w-]{43}$/);
    const form = { grant_type: 'authorization_code', code, client_id: clientId, redirect_uri: REDIRECT_URI };
    const tokens = await fixture.tokens({ ...form, code_verifier: verifier, resource: RESOURCE });
    expect(await fixture.scopesAtMcp(tokens.access_token)).toEqual(['tunnels:read']);
    const [granted] = (await fixture.accounts.auditOf('oauth.granted')).slice(-1);
    expect(granted).toMatchObject({
      user_id: await fixture.userId(EMAIL),
      details: { client_id: clientId, scopes: ['tunnels:read'] },
    });
    expect(
      JSON.stringify(await fixture.accounts.database.db.selectFrom('oauth_codes').selectAll().execute()),
    ).not.toContain(code);
  });

  it('returns a code that expires after a minute', async () => {
    const to = await landing(await decide(await asked(), { allow: true }));
    const code = to.searchParams.get('code') ?? '';
    await fixture.accounts.clock.advance(OAUTH_CODE_MS);
    const form = { grant_type: 'authorization_code', code, client_id: clientId, redirect_uri: REDIRECT_URI };
    expect((await fixture.token({ ...form, code_verifier: verifier })).status).toBe(400);
  });

  it('redirects with access_denied on denial, and creates no grant', async () => {
    const grants = () => fixture.accounts.database.db.selectFrom('oauth_grants').select('id').execute();
    const before = await grants();
    const to = await landing(await decide(await asked({ state: undefined }), { allow: false, scopes: [] }));
    expect(Object.fromEntries(to.searchParams)).toEqual({ x: '1', error: 'access_denied', iss: ISSUER });
    expect(await grants()).toEqual(before);
  });

  it('succeeds once, even for concurrent decisions', async () => {
    const id = await asked();
    const both = await Promise.all([decide(id, { allow: true }), decide(id, { allow: false })]);
    expect(sortedStatuses(both)).toEqual([200, 404]);
    expect(await codeOf(await decide(id, { allow: true }))).toBe('OAUTH_REQUEST_UNKNOWN');
    expect(await codeOf(await show(id))).toBe('OAUTH_REQUEST_UNKNOWN');
  });

  it.each([
    [{ allow: true, scopes: [] }, 'scopes: must not be empty'],
    [{ allow: true, scopes: ['tunnels:read', 'requests:read'] }, 'scopes: requests:read was not requested'],
    [{ allow: 'yes' }, 'allow: must be a boolean, not string'],
    [{}, 'allow: is missing'],
  ])('returns 400 for an invalid decision, and leaves the request open: %j', async (body, reason) => {
    const id = await asked();
    const answer = await decide(id, body);
    expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([
      400,
      expect.stringContaining(reason),
    ]);
    expect((await decide(id, { allow: false })).status).toBe(200);
  });

  it('returns 404 after ten minutes', async () => {
    const id = await asked();
    await fixture.accounts.clock.advance(OAUTH_REQUEST_MS);
    ({ bearer } = await fixture.accounts.logIn(EMAIL));
    expect([(await show(id)).status, (await decide(id, { allow: true })).status]).toEqual([404, 404]);
  });

  it("requires the user's access token; a cookie is not enough", async () => {
    const id = await asked();
    const { cookie } = await fixture.accounts.logIn(EMAIL);
    const path = `/oauth/requests/${id}/decision`;
    for (const headers of [{}, { cookie }, { authorization: `Bearer ${randomToken(32)}` }])
      expect((await fixture.accounts.post(path, { allow: true }, headers)).status).toBe(401);
    expect((await show(id)).status).toBe(200);
    for (const odd of ['%00', 'ask_%F0%9F', 'ask_', 'x'.repeat(500)]) expect((await show(odd)).status).toBe(404);
  });

  it("returns 401 if the user's password was reset in another process, so that no grant outlives the reset", async () => {
    const { db } = fixture.accounts.database;
    const id = await asked();
    // This process has just cached the account, and another process resets the password.
    expect((await show(id)).status).toBe(200);
    const userId = await fixture.userId(EMAIL);
    const setEpoch = (change: number) =>
      sql`update users set epoch = epoch + ${change} where id = ${userId}`.execute(db);
    await setEpoch(1);
    try {
      expect([(await show(id)).status, (await decide(id, { allow: true })).status]).toEqual([200, 401]);
    } finally {
      await setEpoch(-1);
    }
    expect((await decide(id, { allow: false })).status).toBe(200);
  });

  it('ends the least recently used of a hundred grants when a new app connects', async () => {
    const { db } = fixture.accounts.database;
    const userId = await fixture.userId(EMAIL);
    const at = new Date(fixture.accounts.clock.now());
    const row = { user_id: userId, client_id: 'many', client_host: '', client_name: '', scope: 'tunnels:read' };
    const early = new Date(at.getTime() - 86_400_000);
    const more = { ...row, resource: RESOURCE, epoch: 0, created_at: early };
    await db.deleteFrom('oauth_grants').where('user_id', '=', userId).execute();
    const many = Array.from({ length: OAUTH_GRANTS_PER_ACCOUNT_MAX - 1 }, () => ({ ...more, last_used_at: at }));
    const { id: oldest } = await db.insertInto('oauth_grants').values(more).returning('id').executeTakeFirstOrThrow();
    await db.insertInto('oauth_grants').values(many).execute();
    await landing(await decide(await asked(), { allow: true }));
    const ended = await db.selectFrom('oauth_grants').select('id').where('revoked_at', 'is not', null).execute();
    expect(ended).toEqual([{ id: oldest }]);
  });

  it('keeps the new grant if all hundred older grants were used at the same moment', async () => {
    const { db } = fixture.accounts.database;
    const user_id = await fixture.userId(EMAIL);
    const at = new Date(fixture.accounts.clock.now());
    const row = { user_id, client_id: 'many', client_host: '', client_name: '', scope: 'tunnels:read', epoch: 0 };
    await db.deleteFrom('oauth_grants').where('user_id', '=', user_id).execute();
    const many = Array.from({ length: OAUTH_GRANTS_PER_ACCOUNT_MAX }, (_, nr) => ({
      ...row,
      resource: RESOURCE,
      created_at: at,
      last_used_at: at,
      // IDs lower than any generated ID: sorted by ID, the new grant would end.
      id: `00000000-0000-0000-0000-${`${nr}`.padStart(12, '0')}`,
    }));
    await db.insertInto('oauth_grants').values(many).execute();
    await landing(await decide(await asked(), { allow: true }));
    const ended = await db.selectFrom('oauth_grants').select('client_id').where('revoked_at', 'is not', null).execute();
    expect(ended).toEqual([{ client_id: 'many' }]);
  });
});

describe('an OAuth client registered by the operator', () => {
  const redirectUris = ['https://ide.example/cb', 'http://localhost/cb'];

  it('needs no client document, and loses its requests and grants when revoked', async () => {
    const context = fixture.accounts.context;
    const { id } = await createOauthClient(context, OPERATOR, { name: ' Acme\nIDE ', redirectUris });
    const change = { client_id: id, redirect_uri: 'https://ide.example/cb' };
    const request = await asked(change);
    expect(await (await show(request)).json()).toMatchObject({
      client_id: id,
      client_host: 'Acme IDE',
      client_name: 'Acme IDE',
      redirect_host: 'ide.example',
    });
    const to = await landing(await decide(request, { allow: true }));
    const form = { grant_type: 'authorization_code', code: to.searchParams.get('code') ?? '', client_id: id };
    const redeem = { ...form, redirect_uri: 'https://ide.example/cb', code_verifier: verifier };
    const { access_token, refresh_token } = await fixture.tokens(redeem);
    expect((await listOauthClients(context))[0]).toMatchObject({ id, name: 'Acme IDE', redirectUris, revokedAt: null });
    const waiting = await asked(change);
    const [late] = await fixture.accounts.database.db
      .selectFrom('oauth_requests')
      .selectAll()
      .where('id', '=', waiting)
      .execute();
    expect(await revokeOauthClient(context, OPERATOR, id)).toEqual({ id, name: 'Acme IDE', grantsEnded: 1 });
    expect((await show(waiting)).status).toBe(404);
    expect((await authorize(change)).status).toBe(400);
    // Restores the request, as if it had been checked before the revocation and stored after it.
    await fixture.accounts.database.db
      .insertInto('oauth_requests')
      .values(late as NonNullable<typeof late>)
      .execute();
    expect((await decide(waiting, { allow: true })).status).toBe(404);
    expect((await fixture.token({ ...fixture.refreshForm(refresh_token), client_id: id })).status).toBe(400);
    await fixture.accounts.clock.advance(KNOWN_USER_MS);
    expect(await fixture.scopesAtMcp(access_token)).toBeNull();
    await expect(revokeOauthClient(context, OPERATOR, id)).rejects.toMatchObject({ code: 'OAUTH_CLIENT_UNKNOWN' });
    const [created] = await fixture.accounts.auditOf('oauth-client.created');
    expect([created?.actor, created?.details]).toEqual(['operator:root', { client_id: id, name: 'Acme IDE' }]);
  });

  it.each([
    [{ name: '\n', redirectUris }, 'the client has no name'],
    [{ name: 'x', redirectUris: [] }, 'the client has no redirect URI'],
    [
      { name: 'x', redirectUris: [...redirectUris, 'cursor://cb'] },
      'the redirect URI cursor://cb is neither https nor http on localhost',
    ],
  ])('is rejected if invalid: %j', async (input, reason) => {
    await expect(createOauthClient(fixture.accounts.context, OPERATOR, input)).rejects.toMatchObject({
      code: 'OAUTH_CLIENT_INVALID',
      values: { reason },
    });
  });
});
