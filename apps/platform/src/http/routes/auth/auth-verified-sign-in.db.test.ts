import { afterAll, beforeAll, expect, it } from 'vitest';
import { type AccountsFixture, openAccounts, PASSWORD } from '../../auth/accounts.fixture.ts';

let http: AccountsFixture;
let https: AccountsFixture;
beforeAll(async () => {
  http = await openAccounts();
  https = await openAccounts({ settings: { public_url: 'https://tunnels.example.com' }, beside: http });
});
afterAll(() => http.close());

const HTML = { accept: 'text/html' };

interface Registered {
  readonly email: string;
  /** Registration cookie as a browser would send it back. */
  readonly cookie: string;
  readonly set: string;
}

let made = 0;
const registered = async (at: AccountsFixture): Promise<Registered> => {
  const email = `verified-${(made += 1)}@example.com`;
  const answer = await at.post('/auth/register', { email, password: PASSWORD });
  expect(answer.status).toBe(201);
  const [set = ''] = answer.headers.getSetCookie();
  return { email, cookie: set.split(';')[0] ?? '', set };
};

const open = async (at: AccountsFixture, email: string, headers: Record<string, string>): Promise<Response> => {
  const [token = ''] = await at.mailedTokens(email);
  return at.ask('GET', `/auth/verify-email/${token}`, undefined, headers);
};

const namesSet = (answer: Response): string[] =>
  answer.headers
    .getSetCookie()
    .filter((set) => !set.includes('Max-Age=0'))
    .map((set) => set.split('=')[0] ?? '');

it('registration sets a cookie for a day, with the __Host- prefix over https and without it over http', async () => {
  const day = 'Max-Age=86400; Path=/; HttpOnly';
  expect((await registered(http)).set).toMatch(new RegExp(`^registration=\\d+\\.[\\w-]{43}; ${day}; SameSite=Lax$`));
  const { set } = await registered(https);
  expect(set).toMatch(new RegExp(`^__Host-registration=\\d+\\.[\\w-]{43}; ${day}; Secure; SameSite=Lax$`));
});

it('the verification link signs in the registering browser once, with a working session', async () => {
  const { email, cookie } = await registered(https);
  const answer = await open(https, email, { ...HTML, cookie });
  expect([answer.status, answer.headers.get('location')]).toEqual([303, '../../app/verify?signed_in=yes']);
  expect(namesSet(answer)).toEqual(['refresh_token', '__Host-refresh-binding']);
  expect(answer.headers.getSetCookie().join()).toMatch(/__Host-registration=; Max-Age=0/);
  const session = answer.headers
    .getSetCookie()
    .map((set) => set.split(';')[0])
    .join('; ');
  const headers = { cookie: session, origin: 'https://tunnels.example.com' };
  expect((await https.ask('POST', '/auth/refresh', undefined, headers)).status).toBe(200);
  expect((await open(https, email, { ...HTML, cookie })).status).toBe(400);
});

it.each([
  ['elsewhere', () => ({ ...HTML })],
  ['with the cookie of another account', async () => ({ ...HTML, cookie: (await registered(http)).cookie })],
  ['with two cookies', ({ cookie }: Registered) => ({ ...HTML, cookie: `${cookie}; ${cookie}` })],
  ['with a changed end', ({ cookie }: Registered) => ({ ...HTML, cookie: cookie.replace(/=\d+/, '=9999999999999') })],
  ['beside a session', ({ cookie }: Registered) => ({ ...HTML, cookie: `${cookie}; refresh_token=of-somebody` })],
  ['with nonsense', () => ({ ...HTML, cookie: 'registration=x; registration' })],
] as const)(
  '%s the verification link leads to the sign-in page with the address and signs no account in',
  async (_, headersOf) => {
    const account = await registered(http);
    const answer = await open(http, account.email, await headersOf(account));
    expect([answer.status, namesSet(answer)]).toEqual([200, []]);
    expect(await answer.text()).toContain(`../../app/login?email=${encodeURIComponent(account.email)}`);
  },
);

it('the verification link as JSON responds with a message and signs no account in', async () => {
  const { email, cookie } = await registered(http);
  const answer = await open(http, email, { cookie });
  expect([answer.status, await answer.json()]).toEqual([200, { message: 'email verified: you can sign in now' }]);
  expect(namesSet(answer)).toEqual([]);
});

it('the verification link signs in no account a day after the registration, even if the link is new', async () => {
  const { email, cookie } = await registered(http);
  await http.clock.advance(24 * 3_600_000);
  const { db } = http.database;
  await db
    .updateTable('mail_tokens')
    .set({ expires_at: new Date(http.clock.now() + 1000) })
    .execute();
  const answer = await open(http, email, { ...HTML, cookie });
  expect([answer.status, namesSet(answer)]).toEqual([200, []]);
});

it('the verification link does not sign in a suspended account', async () => {
  const { email, cookie } = await registered(http);
  await http.database.db.updateTable('users').set({ status: 'suspended' }).where('email', '=', email).execute();
  const answer = await open(http, email, { ...HTML, cookie });
  expect([answer.status, namesSet(answer)]).toEqual([200, []]);
});
