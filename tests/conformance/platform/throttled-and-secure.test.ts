// A platform behind https with low rate limits: rejected requests, requests that are answered nevertheless, and the cookie.
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, refusalOf } from './api-request.fixture.ts';
import { newEmail, PASSWORD, PlatformHarness } from './platform-harness.fixture.ts';
import { row } from './rows.fixture.ts';

const PER_ACCOUNT = 4;
const PER_ADDRESS = 20;

const harness = new PlatformHarness();
beforeAll(() =>
  harness.start({
    platform: 'public_url = "https://tunnel.example"\ntrusted_proxies = ["127.0.0.1"]',
    attempts: `auth_per_minute = ${PER_ADDRESS}\nauth_per_account_per_minute = ${PER_ACCOUNT}`,
  }),
);
afterAll(() => harness.close());

/** Sends a request as a reverse proxy forwards it. Each test uses separate visitor addresses. */
const from = (address: string, path: string, body: unknown): Promise<Answer> =>
  harness.ask('POST', path, { body, headers: { 'x-forwarded-for': address } });

const expectThrottled = (answer: Answer): void => {
  expect(refusalOf(answer)).toEqual([429, 'LOGIN_THROTTLED']);
  const seconds = Number(answer.headers.get('retry-after'));
  expect([Number.isInteger(seconds), seconds >= 1, seconds <= 60]).toEqual([true, true, true]);
};

it(row('Contract', 9), async () => {
  const email = newEmail();
  await from('192.0.2.1', '/auth/register', { email, password: PASSWORD });
  await harness.get(`/auth/verify-email/${await harness.mailedToken(email)}`);
  const answer = await from('192.0.2.1', '/auth/login', { email, password: PASSWORD });
  const [set = '', bound = ''] = answer.headers.getSetCookie();
  const [token, ...attributes] = set.split('; ');
  expect(token).toMatch(/^refresh_token=[\w-]{43}$/);
  expect(attributes.sort()).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/auth', 'SameSite=Lax', 'Secure']);
  const [mail] = await harness.mails(email);
  expect(mail?.text).toContain('https://tunnel.example/auth/verify-email/');
  const renewed = await harness.ask('POST', '/auth/refresh', {
    cookie: `${answer.cookie}; ${bound.split(';')[0]}`,
    headers: { origin: 'https://tunnel.example' },
  });
  expect([renewed.status, renewed.headers.get('set-cookie')]).toEqual([200, expect.stringMatching(/; Secure/)]);
  expect(renewed.headers.get('strict-transport-security')).toMatch(/^max-age=\d+/);
});

const BINDING = '__Host-refresh-binding';

/** Signs in and returns the cookies of the browser: the refresh token, and the cookie that binds the token to the browser. */
const enter = async (address: string): Promise<{ token: string; binding: string; set: string[] }> => {
  const email = newEmail();
  await from(address, '/auth/register', { email, password: PASSWORD });
  await harness.get(`/auth/verify-email/${await harness.mailedToken(email)}`);
  const set = (await from(address, '/auth/login', { email, password: PASSWORD })).headers.getSetCookie();
  const [token = '', binding = ''] = set.map((text) => text.split(';')[0] ?? '');
  return { token, binding, set };
};

/** Headers of a dashboard request in a browser with fetch metadata, in a browser that sends only the origin, and in unusual browsers. */
const BROWSERS: readonly Record<string, string>[] = [
  { origin: 'https://tunnel.example', 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' },
  { origin: 'https://tunnel.example' },
  { 'sec-fetch-site': 'none' },
  { 'sec-fetch-dest': 'empty' },
  { 'Sec-Fetch-User': '?1' },
];

it(row('Contract', 9, 'a browser also shows the cookie that ties it to the session'), async () => {
  const own = await enter('192.0.2.2');
  const other = await enter('192.0.2.3');
  const [, ...attributes] = (own.set[1] ?? '').split('; ');
  expect(own.binding).toMatch(/^__Host-refresh-binding=[\w-]{43}$/);
  expect(attributes.sort()).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/', 'SameSite=Lax', 'Secure']);
  const refresh = (cookie: string, headers: Record<string, string>): Promise<Answer> =>
    harness.ask('POST', '/auth/refresh', { cookie, headers });
  // Cookie names that a tunnel's page can set, although browsers prevent it from setting the real name.
  const likeIt = [`__host-refresh-binding`, `x__Host-refresh-binding`, `\u00a0${BINDING}`, `\u0085${BINDING}`];
  const wrong = [
    own.token,
    `${own.token}; ${other.binding}`,
    `${own.token}; ${own.binding}x`,
    `${own.token}; ${BINDING}=`,
    `${own.token}; ${own.binding}; ${other.binding}`,
    ...likeIt.map((name) => `${own.token}; ${own.binding.replace(BINDING, name)}`),
  ];
  for (const headers of BROWSERS) {
    for (const cookie of wrong) expect(refusalOf(await refresh(cookie, headers))).toEqual([401, 'REFRESH_INVALID']);
  }
  // None of the rejected attempts has used up the token or ended its session, even if repeated.
  let { token } = own;
  for (const headers of BROWSERS) {
    const answer = await refresh(`${token}; ${own.binding}`, headers);
    expect(answer.status).toBe(200);
    expect(answer.headers.getSetCookie()[1]?.split(';')[0]).toBe(own.binding);
    token = answer.cookie;
  }
  const out = await harness.ask('POST', '/auth/logout', { cookie: `${token}; ${own.binding}` });
  expect(out.headers.getSetCookie()[1]).toBe(`${BINDING}=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Lax`);
});

it(row('Contract', 9, 'a program shows the refresh token only'), async () => {
  let { token } = await enter('192.0.2.4');
  // The request comes from fetch in Node.js, which always sends Sec-Fetch-Mode: cors.
  for (let times = 0; times < 3; times += 1) {
    const answer = await harness.ask('POST', '/auth/refresh', { cookie: token });
    expect(answer.status).toBe(200);
    token = answer.cookie;
  }
});

it(row('Contract', 30, 'per account, from any address that it does not know'), async () => {
  const email = newEmail();
  for (let tries = 0; tries < PER_ACCOUNT; tries += 1) {
    const answer = await from(`192.0.2.${10 + tries}`, '/auth/login', { email, password: PASSWORD });
    expect(answer.status).toBe(401);
  }
  expectThrottled(await from('192.0.2.30', '/auth/login', { email: ` ${email.toUpperCase()}`, password: PASSWORD }));
  expect((await from('192.0.2.30', '/auth/login', { email: newEmail(), password: PASSWORD })).status).toBe(401);
});

it(row('Contract', 30, 'per account: a guesser gets 429, its owner 200'), async () => {
  const email = newEmail();
  await from('192.0.2.50', '/auth/register', { email, password: PASSWORD });
  await harness.get(`/auth/verify-email/${await harness.mailedToken(email)}`);
  for (let tries = 0; tries < PER_ACCOUNT; tries += 1) {
    expect((await from('192.0.2.66', '/auth/login', { email, password: 'a guess of it' })).status).toBe(401);
  }
  expectThrottled(await from('192.0.2.66', '/auth/login', { email, password: PASSWORD }));
  expect((await from('192.0.2.50', '/auth/login', { email, password: PASSWORD })).status).toBe(200);
  // Guesses from many networks slow down networks that never signed in, but not the network that did.
  for (let tries = 0; tries < 2 * PER_ACCOUNT; tries += 1) {
    await from(`198.18.0.${tries}`, '/auth/login', { email, password: 'a guess of it' });
  }
  expectThrottled(await from('198.18.0.100', '/auth/login', { email, password: PASSWORD }));
  expect((await from('192.0.2.50', '/auth/login', { email, password: PASSWORD })).status).toBe(200);
});

it(row('Contract', 30, 'per address, for any account'), async () => {
  const reset = () => from('198.51.100.1', '/auth/reset-password', { token: 'x'.repeat(43), password: PASSWORD });
  for (let tries = 0; tries < PER_ADDRESS; tries += 1) expect((await reset()).status).toBe(400);
  expectThrottled(await reset());
  expectThrottled(await from('198.51.100.1', '/auth/login', { email: newEmail(), password: PASSWORD }));
  expectThrottled(await from('198.51.100.1', '/auth/register', { email: newEmail(), password: PASSWORD }));
  expect((await from('198.51.100.2', '/auth/reset-password', { token: 'x', password: PASSWORD })).status).toBe(400);
});

it(row('Contract', 15, 'throttled'), async () => {
  const email = newEmail();
  await from('203.0.113.1', '/auth/register', { email, password: PASSWORD });
  const answers: Answer[] = [];
  for (let tries = 0; tries < 2 * PER_ACCOUNT; tries += 1) {
    answers.push(await from('203.0.113.1', '/auth/forgot-password', { email }));
  }
  expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
  expect(answers[0]?.status).toBe(200);
  // A recipient gets at most three mails an hour, regardless of the number of requests. The first was the registration mail.
  await eventually(() => expect(harness.rawMails(email)).toHaveLength(3), { timeoutMs: 30_000 });
});
