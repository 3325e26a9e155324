// Contract rows about refresh tokens, their cookie, and mails.
import { createHash } from 'node:crypto';
import { eventually } from '@tunnel/testkit';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, refusalOf } from './api-request.fixture.ts';
import { newEmail, onSharedPlatform, PASSWORD, type Person, PlatformHarness } from './platform-harness.fixture.ts';
import { row } from './rows.fixture.ts';

const harness = onSharedPlatform(new PlatformHarness());
let ann: Person;
beforeAll(async () => {
  ann = await harness.person();
});

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const refresh = (cookie: string, headers: Record<string, string> = {}): Promise<Answer> =>
  harness.ask('POST', '/auth/refresh', { cookie, headers });
const logout = (cookie: string, headers: Record<string, string> = {}): Promise<Answer> =>
  harness.ask('POST', '/auth/logout', { cookie, headers });

describe('refresh tokens', () => {
  it(row('Contract', 7), async () => {
    const { cookie } = await harness.enter(ann.email);
    const token = cookie.slice('refresh_token='.length);
    expect(Buffer.from(token, 'base64url')).toHaveLength(32);
    const rows = await harness.db.selectFrom('refresh_tokens').selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(token);
    expect(rows.map(({ token_hash }) => token_hash)).toContain(sha256(token));
    const next = await refresh(cookie);
    expect([next.status, next.cookie === cookie]).toEqual([200, false]);
    expect((await refresh(next.cookie)).status).toBe(200);
  });

  it(row('Contract', 8, 'within 10 s'), async () => {
    const { cookie } = await harness.enter(ann.email);
    const other = await harness.enter(ann.email);
    const answers = await Promise.all(Array.from({ length: 6 }, () => refresh(cookie)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
    expect(new Set(answers.map((answer) => answer.cookie)).size).toBe(6);
    expect(refusalOf(await refresh(cookie))).toEqual([401, 'REFRESH_INVALID']);
    for (const answer of answers) expect((await refresh(answer.cookie)).status).toBe(401);
    // A token of a different sign-in belongs to a different family.
    expect((await refresh(other.cookie)).status).toBe(200);
  });

  it(row('Contract', 10), async () => {
    const { port } = new URL(harness.url);
    let { cookie } = await harness.enter(ann.email);
    const foreign = [
      'http://evil.localhost:8000',
      'https://localhost:8080',
      'null',
      'http://localhost',
      `http://x:${port}`,
    ];
    for (const origin of foreign) {
      const refused = await refresh(cookie, { origin });
      expect([origin, ...refusalOf(refused), refused.cookie]).toEqual([origin, 403, 'ORIGIN_REFUSED', '']);
      const left = await logout(cookie, { origin });
      expect([origin, left.status, left.headers.get('set-cookie')]).toEqual([origin, 204, null]);
    }
    for (const origin of ['http://localhost:8080', `http://localhost:${port}`, `http://127.0.0.1:${port}`]) {
      const answer = await refresh(cookie, { origin });
      expect([origin, answer.status]).toEqual([origin, 200]);
      cookie = answer.cookie;
    }
  });

  it(row('Contract', 11), async () => {
    const { cookie } = await harness.enter(ann.email);
    const successor = (await refresh(cookie)).cookie;
    const answer = await logout(cookie);
    expect([answer.status, answer.text]).toEqual([204, '']);
    expect(answer.headers.get('set-cookie')).toMatch(/^refresh_token=; Max-Age=0; Path=\/auth;/);
    // Signing out revokes the whole token family, not only a single token.
    expect((await refresh(successor)).status).toBe(401);
    for (const odd of ['', 'refresh_token=x', 'refresh_token=%00', cookie])
      expect((await logout(odd)).status).toBe(204);
  });
});

describe('mail', () => {
  it(row('Contract', 12), async () => {
    const { email, verifyToken } = await harness.register();
    await harness.post('/auth/forgot-password', { email });
    const resetToken = await harness.mailedToken(email, 2);
    const [verify, reset] = await harness.mails(email);
    expect(verify?.text?.split(/\r?\n/)).toContain(`http://localhost:8080/auth/verify-email/${verifyToken}`);
    expect(reset?.text?.split(/\r?\n/)).toContain(`http://localhost:8080/app/reset-password?token=${resetToken}`);
    for (const { raw } of harness.rawMails(email)) {
      const head = /Content-Type: text\/plain[^]*?\r\n\r\n/i.exec(raw)?.[0] ?? '';
      expect(head).toMatch(/Content-Transfer-Encoding: (7bit|quoted-printable)/i);
    }
    expect(verify?.from?.address).toBe('no-reply@localhost');
  });

  it(row('Contract', 12, 'a page for browsers'), async () => {
    const { email, verifyToken } = await harness.register();
    const headers = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
    const page = await harness.ask('GET', `/auth/verify-email/${verifyToken}`, { headers });
    expect([page.status, page.headers.get('content-type')]).toEqual([200, expect.stringMatching(/^text\/html/)]);
    const again = await harness.ask('GET', `/auth/verify-email/${verifyToken}`, { headers });
    expect([again.status, again.headers.get('content-type')]).toEqual([400, expect.stringMatching(/^text\/html/)]);
    expect((await harness.login(email)).status).toBe(200);
  });

  it(row('Contract', 13), async () => {
    const email = newEmail();
    await harness.post('/auth/register', { email, password: PASSWORD });
    const began = performance.now();
    const [mail] = await eventually(
      () => {
        const found = harness.rawMails(email);
        if (found.length === 0) throw new Error('no mail yet');
        return found;
      },
      { timeoutMs: 30_000 },
    );
    // The mail takes 2 s on an idle machine.
    expect(performance.now() - began).toBeLessThan(15_000);
    expect(mail?.name).toMatch(/^\d{8}T\d{6}\.\d{3}Z-[0-9a-f-]{36}\.eml$/);
    const written = mail?.name.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(.*?Z).*$/, '$1-$2-$3T$4:$5:$6') ?? '';
    expect(Math.abs(Date.now() - Date.parse(written))).toBeLessThan(60_000);
  });

  it(row('Contract', 14), async () => {
    const { email, verifyToken } = await harness.register();
    await harness.post('/auth/forgot-password', { email });
    const resetToken = await harness.mailedToken(email, 2);
    const rows = JSON.stringify(await harness.db.selectFrom('mail_tokens').selectAll().execute());
    for (const token of [verifyToken, resetToken]) {
      expect(Buffer.from(token, 'base64url')).toHaveLength(32);
      expect(rows).not.toContain(token);
      expect(rows).toContain(sha256(token));
    }
    // A token of either kind is rejected for the other purpose, and the attempt does not use it up.
    expect((await harness.get(`/auth/verify-email/${resetToken}`)).status).toBe(400);
    expect((await harness.post('/auth/reset-password', { token: verifyToken, password: PASSWORD })).status).toBe(400);
    expect((await harness.login(email)).status).toBe(403);
    const reset = { token: resetToken, password: 'a new password' };
    const races = await Promise.all([1, 2, 3].map(() => harness.post('/auth/reset-password', reset)));
    expect(races.map(({ status }) => String(status)).sort()).toEqual(['200', '400', '400']);
    // The password reset verifies the email address.
    expect((await harness.login(email, 'a new password')).body).toMatchObject({ user: { email_verified: true } });
  });
});
