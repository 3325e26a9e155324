// OAuth tokens at endpoints of other kinds, and the events that end tokens.

import { OAUTH_SCOPES } from '@tunnel/contract';
import { SCOPES } from '@tunnel/mcp/tools';
import { importJWK, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LIMITS } from '../../../limits.ts';
import { restore, suspend } from '../../../services/accounts/account-standing.ts';
import { openPrivateKey, signingKeyRows } from '../../../services/auth/signing-key-store.ts';
import { KNOWN_USER_MS } from '../../../services/shared/recent-lookups.ts';
import { MASTER_KEY, openAccounts, PASSWORD } from '../../auth/accounts.fixture.ts';
import { CLIENT_ID, OauthFixture, openOauth, RESOURCE, refusalOf } from './oauth.fixture.ts';

let fixture: OauthFixture;
const email = 'ann@example.com';
const OPERATOR = { kind: 'operator', name: 'root' } as const;

beforeAll(async () => {
  fixture = await openOauth();
  await fixture.accounts.signUp(email);
});
afterAll(() => fixture.close());

const connect = async (who = email) => fixture.tokens((await fixture.allow(who)).form);
const asBearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** Creates a token with a valid signature and claims chosen by the test. */
const forge = async (changes: Record<string, unknown>): Promise<string> => {
  const { accounts } = fixture;
  const [row] = await signingKeyRows(accounts.database.db, accounts.clock.now());
  const now = Math.floor(accounts.clock.now() / 1000);
  const { grantId } = await fixture.allow(email);
  const claims = {
    iss: 'http://localhost:8080',
    aud: RESOURCE,
    sub: await fixture.userId(email),
    iat: now,
    exp: now + 900,
    jti: 'jwt_1',
    epoch: 0,
    grant_id: grantId,
    client_id: CLIENT_ID,
    scope: 'tunnels:read',
    ...changes,
  };
  const key = await importJWK(openPrivateKey(MASTER_KEY, row!), 'EdDSA');
  return new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA', kid: row?.kid ?? '' }).sign(key);
};

describe('an access token for /mcp', () => {
  it('is rejected on every path except /mcp', async () => {
    const { access_token } = await connect();
    for (const path of ['/auth/me', '/auth/sessions', '/oauth/grants']) {
      const answer = await fixture.accounts.ask('GET', path, undefined, asBearer(access_token));
      expect([path, answer.status, ((await answer.json()) as { code: string }).code]).toEqual([
        ...[path, 401, 'ACCESS_TOKEN_INVALID'],
      ]);
    }
    expect(await fixture.scopesAtMcp(access_token)).not.toBeNull();
  });

  it('differs from a sign-in token, which /mcp rejects', async () => {
    const { bearer } = await fixture.accounts.logIn(email);
    expect(await fixture.scopesAtMcp(bearer['authorization']?.slice('Bearer '.length) ?? '')).toBeNull();
  });

  it.each<[string, Record<string, unknown>]>([
    ['the audience of log-ins', { aud: 'tunnel-platform' }],
    ['another resource', { aud: 'http://localhost:8080' }],
    ['another issuer', { iss: 'https://evil.example' }],
    ['an end in the past', { exp: 1 }],
    ['no end', { exp: undefined }],
    ['no grant', { grant_id: undefined }],
    ['a grant that is no id', { grant_id: 'x' }],
    ['a grant that is not there', { grant_id: '00000000-0000-4000-8000-000000000000' }],
    ['another epoch', { epoch: 1 }],
    ['no epoch', { epoch: undefined }],
    ['no client', { client_id: undefined }],
    ['no scope', { scope: undefined }],
    ['a user that is not there', { sub: '00000000-0000-4000-8000-000000000000' }],
  ])('is rejected with %s', async (_what, changes) => {
    expect(await fixture.scopesAtMcp(await forge({}))).toEqual(['tunnels:read']);
    expect(await fixture.scopesAtMcp(await forge(changes))).toBeNull();
  });

  it('is rejected if malformed or far too long', async () => {
    for (const token of ['', 'x', 'a.b.c', 'a'.repeat(100_000)]) expect(await fixture.scopesAtMcp(token)).toBeNull();
  });

  it('expires after 15 minutes, even if cached', async () => {
    const { access_token } = await connect();
    await fixture.accounts.clock.advance(LIMITS.ACCESS_TOKEN_SECS * 1000 - 1000);
    expect(await fixture.scopesAtMcp(access_token)).not.toBeNull();
    await fixture.accounts.clock.advance(1000);
    expect(await fixture.scopesAtMcp(access_token)).toBeNull();
  });

  it('grants only known scopes, which equal the scopes of the tools', async () => {
    expect([...OAUTH_SCOPES]).toEqual([...SCOPES]);
    expect(await fixture.scopesAtMcp(await forge({ scope: 'admin tunnels:close *' }))).toEqual(['tunnels:close']);
  });

  it('causes at most one query for the grant and one for the account in two seconds', async () => {
    const { access_token } = await connect();
    await fixture.accounts.clock.advance(2000);
    let queries = 0;
    const pool = fixture.accounts.database.pool.on('acquire', () => (queries += 1));
    await Promise.all(Array.from({ length: 20 }, () => fixture.scopesAtMcp(access_token)));
    await fixture.scopesAtMcp(access_token);
    pool.removeAllListeners('acquire');
    expect(queries).toBe(2);
  });
});

describe('every grant of an account ends with', () => {
  const person = async (address: string) => {
    await fixture.accounts.signUp(address);
    return { tokens: await connect(address), bearer: (await fixture.accounts.logIn(address)).bearer };
  };
  const expectEnded = async ({ access_token, refresh_token }: Awaited<ReturnType<typeof connect>>): Promise<void> => {
    expect(await fixture.scopesAtMcp(access_token)).toBeNull();
    expect(await refusalOf(await fixture.token(fixture.refreshForm(refresh_token)))).toEqual([400, 'invalid_grant']);
  };
  const grantsOf = async (bearer: Record<string, string>): Promise<unknown> =>
    (await fixture.accounts.ask('GET', '/oauth/grants', undefined, bearer)).json();

  it('a changed password', async () => {
    const { tokens, bearer } = await person('change@example.com');
    const change = { current_password: PASSWORD, new_password: 'another horse battery' };
    expect((await fixture.accounts.post('/auth/password', change, bearer)).status).toBe(200);
    await expectEnded(tokens);
  });

  it('a password reset, including pending codes', async () => {
    const address = 'reset@example.com';
    const { tokens } = await person(address);
    const { form } = await fixture.allow(address);
    await fixture.accounts.post('/auth/forgot-password', { email: address });
    const token = (await fixture.accounts.mailedTokens(address)).at(-1);
    const reset = { token, password: 'another horse battery' };
    expect((await fixture.accounts.post('/auth/reset-password', reset)).status).toBe(200);
    await expectEnded(tokens);
    expect(await refusalOf(await fixture.token(form))).toEqual([400, 'invalid_grant']);
    const { bearer } = await fixture.accounts.logIn(address, 'another horse battery');
    expect(await grantsOf(bearer)).toEqual({ grants: [] });
  });

  it('a suspension, which is named in the error, and stay ended afterwards', async () => {
    const address = 'suspended@example.com';
    const { tokens } = await person(address);
    await suspend(fixture.accounts.context, OPERATOR, address);
    await fixture.accounts.clock.advance(2000);
    await expect(fixture.mcpTokens.check(tokens.access_token)).rejects.toMatchObject({ code: 'ACCOUNT_SUSPENDED' });
    const answer = await fixture.token(fixture.refreshForm(tokens.refresh_token));
    expect(await answer.json()).toEqual({ error: 'invalid_grant', error_description: 'the account is suspended' });
    await restore(fixture.accounts.context, OPERATOR, address);
    await fixture.accounts.clock.advance(2000);
    await expectEnded(tokens);
  });

  it('the deletion of the account, which also deletes the rows', async () => {
    const { tokens, bearer } = await person('deleted@example.com');
    const userId = await fixture.userId('deleted@example.com');
    const answer = await fixture.accounts.ask('DELETE', '/auth/me', { password: PASSWORD }, bearer);
    expect(answer.status).toBe(204);
    await expectEnded(tokens);
    const { db } = fixture.accounts.database;
    const left = await db.selectFrom('oauth_grants').select('id').where('user_id', '=', userId).execute();
    expect(left).toEqual([]);
  });
});

describe('connected apps', () => {
  const list = async (bearer: Record<string, string>) => {
    const answer = await fixture.accounts.ask('GET', '/oauth/grants', undefined, bearer);
    return (await answer.json()) as { grants: { id: string }[] };
  };
  const disconnect = (bearer: Record<string, string>, id: string) =>
    fixture.accounts.ask('DELETE', `/oauth/grants/${id}`, undefined, bearer);

  it('are listed with mcp: false if /mcp is switched off, so that the dashboard hides its address', async () => {
    await fixture.accounts.signUp('off@example.com');
    const { bearer } = await fixture.accounts.logIn('off@example.com');
    expect(await list(bearer)).toEqual({ grants: [] });
    fixture.mcp.enabled = false;
    try {
      expect(await list(bearer)).toEqual({ grants: [], mcp: false });
    } finally {
      fixture.mcp.enabled = true;
    }
  });

  it('are listed for the caller once the code was redeemed, most recently used first', async () => {
    const address = 'lists@example.com';
    await fixture.accounts.signUp(address);
    const { bearer } = await fixture.accounts.logIn(address);
    expect(await list(bearer)).toEqual({ grants: [] });
    // The third app never redeems its code.
    const [first, second] = [
      await fixture.allow(address),
      await fixture.allow(address, { scope: 'tunnels:close', clientId: 'https://other.example/c' }),
      await fixture.allow(address),
    ];
    const { refresh_token } = await fixture.tokens(first.form);
    await fixture.accounts.clock.advance(1000);
    await fixture.tokens(second.form);
    const { grants } = await list(bearer);
    expect(grants.map(({ id }) => id)).toEqual([second.grantId, first.grantId]);
    expect(grants[0]).toEqual({
      id: second.grantId,
      client_id: 'https://other.example/c',
      client_host: 'app.example',
      client_name: 'App',
      scopes: ['tunnels:close'],
      created_at: expect.any(String),
      last_used_at: new Date(fixture.accounts.clock.now()).toISOString(),
    });
    await fixture.accounts.clock.advance(1000);
    await fixture.tokens(fixture.refreshForm(refresh_token));
    expect((await list(bearer)).grants.map(({ id }) => id)).toEqual([first.grantId, second.grantId]);
  });

  it('are rejected immediately after disconnecting, and within two seconds in other processes', async () => {
    const { bearer } = await fixture.accounts.logIn(email);
    const { grantId, form } = await fixture.allow(email);
    const { access_token, refresh_token } = await fixture.tokens(form);
    const beside = new OauthFixture(await openAccounts({ beside: fixture.accounts }));
    expect(await beside.scopesAtMcp(access_token)).not.toBeNull();
    expect(await fixture.scopesAtMcp(access_token)).not.toBeNull();
    expect((await disconnect(bearer, grantId)).status).toBe(204);
    expect(await fixture.scopesAtMcp(access_token)).toBeNull();
    await fixture.accounts.clock.advance(KNOWN_USER_MS);
    expect(await beside.scopesAtMcp(access_token)).toBeNull();
    expect((await fixture.token(fixture.refreshForm(refresh_token))).status).toBe(400);
    expect((await list(bearer)).grants.map(({ id }) => id)).not.toContain(grantId);
    const [row] = (await fixture.accounts.auditOf('oauth.revoked')).slice(-1);
    const userId = await fixture.userId(email);
    expect(row).toMatchObject({ actor: `user:${userId}`, user_id: userId, details: { grant_id: grantId } });
  });

  it('return 404 when disconnected by another account, a second time, or by an invalid ID', async () => {
    await fixture.accounts.signUp('eve@example.com');
    const eve = (await fixture.accounts.logIn('eve@example.com')).bearer;
    const { bearer } = await fixture.accounts.logIn(email);
    const { grantId, form } = await fixture.allow(email);
    const { access_token } = await fixture.tokens(form);
    expect((await disconnect(eve, grantId)).status).toBe(404);
    expect(await fixture.scopesAtMcp(access_token)).not.toBeNull();
    expect((await disconnect(bearer, grantId)).status).toBe(204);
    for (const id of [grantId, 'x', '%00']) expect([id, (await disconnect(bearer, id)).status]).toEqual([id, 404]);
  });
});
