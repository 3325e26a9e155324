import { loadServerConfig } from '@tunnel/config/server';
import { type AccessToken, type ApiError, userPublic, userSessions } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type AccountsFixture, cookieOf, openAccounts, PASSWORD, sortedStatuses } from '../../auth/accounts.fixture.ts';

const DAY = 86_400_000;

let fixture: AccountsFixture;
let email: string;
let count = 0;
beforeAll(async () => {
  fixture = await openAccounts();
});
beforeEach(async () => {
  count += 1;
  email = `user${count}@example.com`;
  await fixture.signUp(email);
});
afterAll(() => fixture.close());

const codeOf = async (answer: Response): Promise<[number, string]> => [
  answer.status,
  ((await answer.json()) as ApiError).code,
];
const me = (bearer: Record<string, string>) => fixture.ask('GET', '/auth/me', undefined, bearer);

describe('POST /auth/refresh', () => {
  it('returns 200 with a new access token and a new cookie each time', async () => {
    const { cookie } = await fixture.logIn(email);
    const first = await fixture.refresh(cookie);
    expect(first.status).toBe(200);
    const { access_token } = (await first.json()) as AccessToken;
    expect((await me({ authorization: `Bearer ${access_token}` })).status).toBe(200);
    expect(first.headers.get('set-cookie')).toMatch(/Max-Age=2592000; Path=\/auth; HttpOnly; SameSite=Lax$/);
    expect(cookieOf(first)).not.toBe(cookie);
    expect((await fixture.refresh(cookieOf(first))).status).toBe(200);
  });

  it('accepts and ignores any body', async () => {
    let { cookie } = await fixture.logIn(email);
    for (const headers of [{ 'content-type': 'application/json' }, { 'content-type': 'text/plain' }]) {
      const answer = await fixture.app.request('/auth/refresh', {
        method: 'POST',
        headers: { cookie, ...headers },
        body: '{broken',
      });
      expect(answer.status).toBe(200);
      cookie = cookieOf(answer);
    }
  });

  it('accepts the previous token five times within 10 s, each time with a working successor', async () => {
    const { cookie } = await fixture.logIn(email);
    await fixture.refresh(cookie);
    await fixture.clock.advance(10_000);
    const answers = await Promise.all(Array.from({ length: 5 }, () => fixture.refresh(cookie)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(new Set(answers.map(cookieOf)).size).toBe(5);
    for (const answer of answers) expect((await fixture.refresh(cookieOf(answer))).status).toBe(200);
  });

  it('returns 401 on the sixth reuse within 10 s and revokes the whole token family', async () => {
    const { cookie } = await fixture.logIn(email);
    const answers = await Promise.all(Array.from({ length: 7 }, () => fixture.refresh(cookie)));
    expect(sortedStatuses(answers)).toEqual([200, 200, 200, 200, 200, 200, 401]);
    const successors = answers.map(cookieOf).filter((text) => text !== '');
    for (const successor of successors) expect((await fixture.refresh(successor)).status).toBe(401);
    expect(await fixture.auditOf('session.reuse-found')).toHaveLength(1);
  });

  it('returns 401 for a token reused after 10 s and revokes its family, but no other sign-ins', async () => {
    const stolen = await fixture.logIn(email);
    const other = await fixture.logIn(email);
    const successor = cookieOf(await fixture.refresh(stolen.cookie));
    await fixture.clock.advance(10_001);
    expect(await codeOf(await fixture.refresh(stolen.cookie))).toEqual([401, 'REFRESH_INVALID']);
    expect(await codeOf(await fixture.refresh(successor))).toEqual([401, 'REFRESH_INVALID']);
    expect((await fixture.refresh(other.cookie)).status).toBe(200);
  });

  it('returns 401 without a cookie, with an unknown cookie, and after 30 days without use', async () => {
    const { cookie } = await fixture.logIn(email);
    for (const odd of [
      '',
      'refresh_token=',
      'refresh_token=x',
      'refresh_token=%00',
      `refresh_token=${'a'.repeat(9000)}`,
    ]) {
      expect(await codeOf(await fixture.refresh(odd))).toEqual([401, 'REFRESH_INVALID']);
    }
    await fixture.clock.advance(29 * DAY);
    const renewed = cookieOf(await fixture.refresh(cookie));
    await fixture.clock.advance(29 * DAY);
    const again = cookieOf(await fixture.refresh(renewed));
    await fixture.clock.advance(30 * DAY);
    expect((await fixture.refresh(again)).status).toBe(401);
  });

  it('returns 401 for two refresh cookies, because a page on a subdomain may have planted one of them', async () => {
    const own = (await fixture.logIn(email)).cookie;
    const planted = (await fixture.logIn(email)).cookie;
    for (const both of [`${own}; ${planted}`, `${planted};a=b;${own}`, `${own}; ${own}`, `refresh_token=; ${own}`]) {
      expect(await codeOf(await fixture.refresh(both))).toEqual([401, 'REFRESH_INVALID']);
    }
    // The refused requests used up neither token, and cookies with similar names do not count as a second refresh cookie.
    expect((await fixture.refresh(`my_refresh_token=x; refresh_token_2=y; ${own}`)).status).toBe(200);
    expect((await fixture.refresh(planted)).status).toBe(200);
  });

  it('returns 403 for a suspended account', async () => {
    const { cookie } = await fixture.logIn(email);
    await fixture.setUser(email, { status: 'suspended' });
    expect(await codeOf(await fixture.refresh(cookie))).toEqual([403, 'ACCOUNT_SUSPENDED']);
  });

  it("returns 403 for a foreign origin, and 200 for the platform's origins", async () => {
    let { cookie } = await fixture.logIn(email);
    for (const origin of ['http://evil.localhost:8000', 'null', 'https://localhost:8080']) {
      expect(await codeOf(await fixture.refresh(cookie, { origin }))).toEqual([403, 'ORIGIN_REFUSED']);
    }
    for (const origin of ['http://localhost:8080', 'http://127.0.0.1:8080']) {
      const answer = await fixture.refresh(cookie, { origin });
      expect(answer.status).toBe(200);
      cookie = cookieOf(answer);
    }
  });
});

describe('POST /auth/refresh from a browser over https', () => {
  const origin = 'https://tunnel.example';
  const settings = { ...loadServerConfig({ env: {} }).platform, public_url: origin };
  let secure: AccountsFixture;
  beforeAll(async () => {
    secure = await openAccounts({ settings, beside: fixture });
  });
  const enter = async (): Promise<[token: string, binding: string]> => {
    const answer = await secure.post('/auth/login', { email, password: PASSWORD });
    const [token = '', binding = ''] = answer.headers.getSetCookie().map((text) => text.split(';')[0] ?? '');
    return [token, binding];
  };

  it("returns 401 without the session's binding cookie, even for a reused token, and keeps the family", async () => {
    const [token, binding] = await enter();
    const successor = cookieOf(await secure.refresh(`${token}; ${binding}`, { origin }));
    await fixture.clock.advance(10_001);
    for (const shown of [token, successor]) {
      expect(await codeOf(await secure.refresh(shown, { origin }))).toEqual([401, 'REFRESH_INVALID']);
    }
    expect((await secure.refresh(`${successor}; ${binding}`, { origin })).status).toBe(200);
  });

  it("returns 401 for another account's session in a browser with a binding cookie", async () => {
    const [, own] = await enter();
    await fixture.signUp(`planter-${email}`);
    const planted = (await secure.logIn(`planter-${email}`)).cookie;
    expect((await secure.refresh(`${planted}; ${own}`, { origin })).status).toBe(401);
    expect((await secure.refresh(planted)).status).toBe(200);
  });

  it('rejects a session started over http until the next sign-in sets the binding cookie', async () => {
    const { cookie } = await fixture.logIn(email);
    expect((await secure.refresh(cookie, { origin })).status).toBe(401);
    const [token, binding] = await enter();
    expect((await secure.refresh(`${token}; ${binding}`, { origin })).status).toBe(200);
  });
});

it('sign-in over http sets no binding cookie, and refresh needs none', async () => {
  const answer = await fixture.post('/auth/login', { email, password: PASSWORD });
  expect(answer.headers.getSetCookie()).toHaveLength(1);
  const renewed = await fixture.refresh(cookieOf(answer), {
    origin: 'http://localhost:8080',
    'sec-fetch-site': 'none',
  });
  expect([renewed.status, renewed.headers.getSetCookie().length]).toEqual([200, 1]);
});

describe('POST /auth/logout', () => {
  it('with two refresh cookies returns 204 and ends both sessions', async () => {
    const own = (await fixture.logIn(email)).cookie;
    const planted = (await fixture.logIn(email)).cookie;
    expect((await fixture.post('/auth/logout', undefined, { cookie: `${own}; ${planted}` })).status).toBe(204);
    for (const cookie of [own, planted]) expect((await fixture.refresh(cookie)).status).toBe(401);
  });

  it('returns 204, ends the token family and clears the cookie on its path', async () => {
    const { cookie } = await fixture.logIn(email);
    const successor = cookieOf(await fixture.refresh(cookie));
    const answer = await fixture.post('/auth/logout', undefined, { cookie: successor });
    expect([answer.status, await answer.text()]).toEqual([204, '']);
    expect(answer.headers.get('set-cookie')).toMatch(
      /^refresh_token=; Max-Age=0; Path=\/auth; HttpOnly; SameSite=Lax$/,
    );
    expect((await fixture.refresh(successor)).status).toBe(401);
    expect((await fixture.refresh(cookie)).status).toBe(401);
  });

  it('returns 204 without a cookie, with an invalid cookie, and when repeated', async () => {
    const { cookie } = await fixture.logIn(email);
    for (const shown of ['', 'refresh_token=x', 'refresh_token=%00', cookie, cookie]) {
      expect((await fixture.post('/auth/logout', undefined, { cookie: shown })).status).toBe(204);
    }
  });

  it('returns 204 and clears the cookie even if the lookup is refused; sign-outs use a separate turn', async () => {
    const callers: unknown[] = [];
    const admission = {
      networkOf: (address: string) => ({ kind: 'network', id: address }) as const,
      inTurn: async (_: unknown, caller: unknown): Promise<never> => {
        callers.push(caller);
        throw new Fault('API_NETWORK_LIMIT', { seconds: 1 });
      },
    };
    const flooded = await openAccounts({ beside: fixture, admission });
    flooded.peer = '192.0.2.1';
    const { cookie } = await fixture.logIn(email);
    const answer = await flooded.post('/auth/logout', undefined, { cookie });
    expect([answer.status, answer.headers.get('set-cookie')]).toEqual([
      204,
      expect.stringContaining('refresh_token=; '),
    ]);
    expect(callers).toEqual([{ kind: 'network', id: '192.0.2.1 logout' }]);
    expect((await flooded.post('/auth/logout')).status).toBe(204);
    expect(callers).toHaveLength(1);
  });

  it('returns 204 for a foreign origin but changes nothing', async () => {
    const { cookie } = await fixture.logIn(email);
    const answer = await fixture.post('/auth/logout', undefined, { cookie, origin: 'http://evil.localhost:8000' });
    expect([answer.status, answer.headers.get('set-cookie')]).toEqual([204, null]);
    expect((await fixture.refresh(cookie)).status).toBe(200);
  });

  it('racing with a refresh leaves no session', async () => {
    const { cookie } = await fixture.logIn(email);
    const [refreshed] = await Promise.all([
      fixture.refresh(cookie),
      fixture.post('/auth/logout', undefined, { cookie }),
    ]);
    if (refreshed.status === 200) expect((await fixture.refresh(cookieOf(refreshed))).status).toBe(401);
    expect((await fixture.refresh(cookie)).status).toBe(401);
  });
});

describe('/auth/me', () => {
  it('GET returns the caller; PATCH changes the name, which is visible at once', async () => {
    const { bearer } = await fixture.logIn(email);
    expect(userPublic.parse(await (await me(bearer)).json())).toMatchObject({ email, display_name: null });
    const changed = await fixture.ask('PATCH', '/auth/me', { display_name: ' Ann ', email: 'x@y' }, bearer);
    expect([changed.status, await changed.json()]).toMatchObject([200, { email, display_name: 'Ann' }]);
    expect(await (await me(bearer)).json()).toMatchObject({ display_name: 'Ann' });
    await fixture.ask('PATCH', '/auth/me', { display_name: null }, bearer);
    expect(await (await me(bearer)).json()).toMatchObject({ display_name: null });
  });

  it.each([{}, { display_name: 1 }, { display_name: 'a\u0000' }, { display_name: 'a'.repeat(101) }])(
    'PATCH returns 400 for %j',
    async (body) => {
      const { bearer } = await fixture.logIn(email);
      const answer = await fixture.ask('PATCH', '/auth/me', body, bearer);
      expect([answer.status, ((await answer.json()) as ApiError).error]).toEqual([
        400,
        expect.stringMatching(/^display_name: /),
      ]);
    },
  );
});

describe('/auth/sessions', () => {
  const list = async (bearer: Record<string, string>, cookie = '') =>
    userSessions.parse(await (await fixture.ask('GET', '/auth/sessions', undefined, { ...bearer, cookie })).json());

  it("DELETE returns 404 for another user's session, an ended session and an invalid ID", async () => {
    const { bearer } = await fixture.logIn(email);
    const [own] = await list(bearer);
    await fixture.signUp(`other-${email}`);
    const other = await fixture.logIn(`other-${email}`);
    const end = (id: string | undefined, who = bearer) => fixture.ask('DELETE', `/auth/sessions/${id}`, undefined, who);
    expect(await codeOf(await end(own?.id, other.bearer))).toEqual([404, 'LOGIN_SESSION_UNKNOWN']);
    expect((await end(own?.id)).status).toBe(204);
    expect((await end(own?.id)).status).toBe(404);
    for (const odd of ['x', '%00', "'", '1'.repeat(500)]) expect((await end(odd)).status).toBe(404);
  });

  it('lists at most 100 sessions; a further sign-in ends the least recently used session', async () => {
    const { id } = await fixture.database.db
      .selectFrom('users')
      .select('id')
      .where('email', '=', email)
      .executeTakeFirstOrThrow();
    const { cookie, bearer } = await fixture.logIn(email);
    await fixture.clock.advance(1000);
    const now = new Date(fixture.clock.now());
    const rows = Array.from({ length: 99 }, () => ({ user_id: id, created_at: now, last_used_at: now }));
    await fixture.database.db.insertInto('refresh_families').values(rows).execute();
    expect(await list(bearer)).toHaveLength(100);
    await fixture.logIn(email);
    expect(await list(bearer)).toHaveLength(100);
    expect((await fixture.refresh(cookie)).status).toBe(401);
  });
});
