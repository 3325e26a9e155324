// A platform behind https, with few attempts for everybody: what is refused, what is answered all the same, and the cookie.
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

/** As the proxy passes it on: each test comes from an address of its own. */
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
  const [token, ...attributes] = (answer.headers.get('set-cookie') ?? '').split('; ');
  expect(token).toMatch(/^refresh_token=[\w-]{43}$/);
  expect(attributes.sort()).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/auth', 'SameSite=Lax', 'Secure']);
  const [mail] = await harness.mails(email);
  expect(mail?.text).toContain('https://tunnel.example/auth/verify-email/');
  const renewed = await harness.ask('POST', '/auth/refresh', {
    cookie: answer.cookie,
    headers: { origin: 'https://tunnel.example' },
  });
  expect([renewed.status, renewed.headers.get('set-cookie')]).toEqual([200, expect.stringMatching(/; Secure/)]);
  expect(renewed.headers.get('strict-transport-security')).toMatch(/^max-age=\d+/);
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
  // From many networks: those that never logged in wait, the one that did does not.
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
  // One was that of the registration: three an hour to one recipient, whoever asks.
  await eventually(() => expect(harness.rawMails(email)).toHaveLength(3), { timeoutMs: 30_000 });
});
