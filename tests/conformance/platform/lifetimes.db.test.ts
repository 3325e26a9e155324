// The lifetimes of tokens, cookies and links: valid a second before their end, and invalid at the end.
import type { AccessToken } from '@tunnel/contract';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { refusalOf } from './api-request.fixture.ts';
import { type ClockedPerson, ClockedPlatform, DAY, HOUR, MINUTE, SECOND } from './clocked-platform.fixture.ts';
import { row } from './rows.fixture.ts';

let platform: ClockedPlatform;
let ann: ClockedPerson;
beforeAll(async () => {
  platform = await ClockedPlatform.start(Date.UTC(2030, 0, 1, 12));
  ann = await platform.person();
});
afterAll(() => platform.close());

describe('access tokens', () => {
  it(row('Limits', 1), async () => {
    const { token } = await platform.enter(ann.email);
    platform.pass(15 * MINUTE - SECOND);
    expect(await platform.status('/auth/me', token)).toBe(200);
    platform.pass(SECOND);
    for (const path of ['/auth/me', '/keys', '/usage', '/usage/chart', '/usage/tunnels', '/load-balancing/groups']) {
      const answer = await platform.ask('GET', path, { token });
      expect([path, ...refusalOf(answer)]).toEqual([path, 401, 'ACCESS_TOKEN_INVALID']);
    }
  });

  it(row('Limits', 1, 'also one that was never shown before'), async () => {
    const { token } = await platform.enter(ann.email);
    platform.pass(15 * MINUTE);
    expect(await platform.status('/auth/me', token)).toBe(401);
  });

  it(row('Authentication', 3, 'when it has expired'), async () => {
    const { token, cookie } = await platform.enter(ann.email);
    platform.pass(16 * MINUTE);
    expect(await platform.status('/auth/me', token)).toBe(401);
    const { access_token: renewed } = (await platform.refresh(cookie)).body as AccessToken;
    platform.pass(14 * MINUTE);
    expect(await platform.status('/auth/me', renewed)).toBe(200);
    platform.pass(2 * MINUTE);
    expect(await platform.status('/auth/me', renewed)).toBe(401);
  });
});

describe('refresh tokens', () => {
  it(row('Limits', 2), async () => {
    const early = await platform.enter(ann.email);
    const late = await platform.enter(ann.email);
    platform.pass(30 * DAY - SECOND);
    const renewed = await platform.refresh(early.cookie);
    expect(renewed.status).toBe(200);
    platform.pass(SECOND);
    expect(refusalOf(await platform.refresh(late.cookie))).toEqual([401, 'REFRESH_INVALID']);
    // The successor token is valid for 30 days after its issue.
    platform.pass(29 * DAY);
    expect((await platform.refresh(renewed.cookie)).status).toBe(200);
  });

  it(row('Contract', 8), async () => {
    const { cookie } = await platform.enter(ann.email);
    const successor = await platform.refresh(cookie);
    platform.pass(10 * SECOND);
    const again = await platform.refresh(cookie);
    expect(again.status).toBe(200);
    platform.pass(1);
    expect(refusalOf(await platform.refresh(cookie))).toEqual([401, 'REFRESH_INVALID']);
    for (const member of [successor, again]) expect((await platform.refresh(member.cookie)).status).toBe(401);
  });

  it(row('Contract', 8, 'it is counted from the first use'), async () => {
    const { cookie } = await platform.enter(ann.email);
    await platform.refresh(cookie);
    for (const seconds of [6, 4]) {
      platform.pass(seconds * SECOND);
      expect((await platform.refresh(cookie)).status).toBe(200);
    }
    platform.pass(6 * SECOND);
    expect((await platform.refresh(cookie)).status).toBe(401);
  });
});

describe('links in mails', () => {
  it(row('Contract', 14, 'verification: 24 h'), async () => {
    const soon = await platform.register();
    const late = await platform.register();
    platform.pass(DAY - SECOND);
    expect(await platform.status(`/auth/verify-email/${soon.verifyToken}`)).toBe(200);
    platform.pass(SECOND);
    const answer = await platform.ask('GET', `/auth/verify-email/${late.verifyToken}`);
    expect(refusalOf(answer)).toEqual([400, 'MAIL_TOKEN_INVALID']);
    expect([(await platform.login(soon.email)).status, (await platform.login(late.email)).status]).toEqual([200, 403]);
  });

  it(row('Contract', 14, 'reset: 1 h'), async () => {
    const reset = async (email: string, afterMs: number) => {
      await platform.ask('POST', '/auth/forgot-password', { body: { email } });
      const token = await platform.mailedToken(email);
      platform.pass(afterMs);
      return platform.ask('POST', '/auth/reset-password', { body: { token, password: 'a new password' } });
    };
    const bob = await platform.person();
    expect(refusalOf(await reset(bob.email, HOUR))).toEqual([400, 'MAIL_TOKEN_INVALID']);
    expect((await reset(bob.email, HOUR - SECOND)).status).toBe(200);
    expect((await platform.login(bob.email, 'a new password')).status).toBe(200);
    expect((await platform.refresh(bob.cookie)).status).toBe(401);
  });
});
