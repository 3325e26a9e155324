// The account endpoints: every status of the table, and the shape of each response.
import { accessToken, loggedIn, messageBody, userPublic } from '@tunnel/contract';
import { beforeAll, describe, expect, it } from 'vitest';
import { refusalOf } from './api-request.fixture.ts';
import { newEmail, onSharedPlatform, PASSWORD, type Person, PlatformHarness } from './platform-harness.fixture.ts';
import { row } from './rows.fixture.ts';

const harness = onSharedPlatform(new PlatformHarness());
let ann: Person;
beforeAll(async () => {
  ann = await harness.person();
});

describe('Auth', () => {
  it(row('Auth', 1), async () => {
    const email = newEmail();
    const made = await harness.post('/auth/register', { email, password: PASSWORD, display_name: 'Ann' });
    expect(made.status).toBe(201);
    messageBody.strict().parse(made.body);
    expect(refusalOf(await harness.post('/auth/register', { email, password: PASSWORD }))).toEqual([
      409,
      'ACCOUNT_EXISTS',
    ]);
    const short = await harness.post('/auth/register', { email: newEmail(), password: '1234567' });
    expect([short.status, short.code, short.error]).toEqual([
      400,
      'API_BAD_REQUEST',
      expect.stringMatching(/^password/),
    ]);
    const nameless = await harness.post('/auth/register', {
      email: newEmail(),
      password: PASSWORD,
      display_name: null,
    });
    expect(nameless.status).toBe(201);
  });

  it(row('Auth', 2), async () => {
    const { verifyToken } = await harness.register();
    const answer = await harness.get(`/auth/verify-email/${verifyToken}`);
    expect(answer.status).toBe(200);
    messageBody.strict().parse(answer.body);
    for (const token of [verifyToken, 'nothing', 'a'.repeat(43), '%00', '%F0%9F%98%80']) {
      expect(refusalOf(await harness.get(`/auth/verify-email/${token}`))).toEqual([400, 'MAIL_TOKEN_INVALID']);
    }
  });

  it(row('Auth', 3), async () => {
    const answer = await harness.login(ann.email);
    expect(answer.status).toBe(200);
    const { user } = loggedIn.strict().parse(answer.body);
    expect(user).toMatchObject({ id: ann.id, email: ann.email });
    expect(answer.cookie).toMatch(/^refresh_token=[\w-]{43}$/);
    expect((await harness.post('/auth/login', { email: ann.email })).status).toBe(400);
    const wrong = await harness.login(ann.email, 'something else');
    expect([...refusalOf(wrong), wrong.cookie]).toEqual([401, 'LOGIN_WRONG', '']);
    expect(refusalOf(await harness.login(newEmail()))).toEqual([401, 'LOGIN_WRONG']);
  });

  it(row('Auth', 3, '403'), async () => {
    const { email } = await harness.register();
    expect(refusalOf(await harness.login(email))).toEqual([403, 'ACCOUNT_UNVERIFIED']);
    const bob = await harness.person();
    await harness.suspend(bob.email);
    expect(refusalOf(await harness.login(bob.email))).toEqual([403, 'ACCOUNT_SUSPENDED']);
    expect(refusalOf(await harness.login(await harness.external()))).toEqual([403, 'ACCOUNT_EXTERNAL']);
  });

  it(row('Auth', 4), async () => {
    const { cookie } = await harness.enter(ann.email);
    for (const given of [{ cookie }, {}]) {
      const answer = await harness.ask('POST', '/auth/logout', given);
      expect([answer.status, answer.text]).toEqual([204, '']);
      expect(answer.headers.get('set-cookie')).toMatch(/^refresh_token=; Max-Age=0; Path=\/auth/);
    }
    expect((await harness.ask('POST', '/auth/refresh', { cookie })).status).toBe(401);
  });

  it(row('Auth', 5), async () => {
    const bob = await harness.person();
    const answer = await harness.ask('POST', '/auth/refresh', { cookie: bob.cookie });
    expect(answer.status).toBe(200);
    const { access_token } = accessToken.strict().parse(answer.body);
    expect((await harness.get('/auth/me', access_token)).status).toBe(200);
    for (const cookie of ['', 'refresh_token=', 'refresh_token=%00', `refresh_token=${'a'.repeat(43)}`]) {
      expect(refusalOf(await harness.ask('POST', '/auth/refresh', { cookie }))).toEqual([401, 'REFRESH_INVALID']);
    }
    await harness.suspend(bob.email);
    const suspended = await harness.ask('POST', '/auth/refresh', { cookie: answer.cookie });
    expect(refusalOf(suspended)).toEqual([403, 'ACCOUNT_SUSPENDED']);
  });

  it(row('Auth', 6), async () => {
    const answer = await harness.get('/auth/me', ann.token);
    expect(answer.status).toBe(200);
    expect(userPublic.strict().parse(answer.body)).toMatchObject({ id: ann.id, email: ann.email });
    expect(refusalOf(await harness.get('/auth/me'))).toEqual([401, 'ACCESS_TOKEN_MISSING']);
    expect(refusalOf(await harness.get('/auth/me', 'nonsense'))).toEqual([401, 'ACCESS_TOKEN_INVALID']);
  });

  it(row('Auth', 7), async () => {
    const known = await harness.post('/auth/forgot-password', { email: ann.email });
    const unknown = await harness.post('/auth/forgot-password', { email: newEmail() });
    expect([known.status, unknown.status]).toEqual([200, 200]);
    messageBody.strict().parse(known.body);
    expect(known.body).toEqual(unknown.body);
    for (const email of ['not an address', '', `${'a'.repeat(9000)}@example.com`]) {
      expect((await harness.post('/auth/forgot-password', { email })).status).toBe(200);
    }
  });

  it(row('Auth', 8), async () => {
    const { email } = await harness.person();
    await harness.post('/auth/forgot-password', { email });
    const token = await harness.mailedToken(email);
    const short = await harness.post('/auth/reset-password', { token, password: '1234567' });
    expect([...refusalOf(short), short.error]).toEqual([400, 'API_BAD_REQUEST', expect.stringMatching(/^password/)]);
    const done = await harness.post('/auth/reset-password', { token, password: 'a new password' });
    expect(done.status).toBe(200);
    messageBody.strict().parse(done.body);
    expect([(await harness.login(email)).status, (await harness.login(email, 'a new password')).status]).toEqual([
      401, 200,
    ]);
    for (const used of [token, 'nothing', '']) {
      const answer = await harness.post('/auth/reset-password', { token: used, password: PASSWORD });
      expect(refusalOf(answer)).toEqual([400, 'MAIL_TOKEN_INVALID']);
    }
  });
});

it(row('Limits', 3), async () => {
  const email = newEmail();
  const statusOf = async (password: string) => (await harness.post('/auth/register', { email, password })).status;
  expect([await statusOf('1234567'), await statusOf('😀'.repeat(7)), await statusOf('12345678')]).toEqual([
    400, 400, 201,
  ]);
  await harness.post('/auth/forgot-password', { email });
  const token = await harness.mailedToken(email, 2);
  const resetTo = async (password: string) => (await harness.post('/auth/reset-password', { token, password })).status;
  expect([await resetTo('1234567'), await resetTo('😀'.repeat(8))]).toEqual([400, 200]);
});

describe('Other lifecycles', () => {
  it(row('Other lifecycles', 1), async () => {
    const { email, verifyToken } = await harness.register();
    expect(verifyToken).toMatch(/^[\w-]{43}$/);
    expect((await harness.login(email)).status).toBe(403);
  });

  it(row('Other lifecycles', 2), async () => {
    const { email, verifyToken } = await harness.register();
    await harness.get(`/auth/verify-email/${verifyToken}`);
    expect((await harness.login(email)).body).toMatchObject({ user: { email_verified: true, status: 'active' } });
  });
});
