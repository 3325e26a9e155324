// Sign-up on servers that admit only invited people, or close sign-up.
import { invite } from '@tunnel/platform';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ClockedPlatform, DAY, SECOND } from './clocked-platform.fixture.ts';
import { row } from './rows.fixture.ts';

const NOW = Date.UTC(2030, 0, 1, 12);
const password = 'correct horse battery';

let byInvite: ClockedPlatform;
let closed: ClockedPlatform;
beforeAll(async () => {
  byInvite = await ClockedPlatform.start(NOW, { sign_up: 'invite' });
  closed = await ClockedPlatform.start(NOW, { sign_up: 'closed' });
});
afterAll(async () => {
  await byInvite.close();
  await closed.close();
});

const invited = async (email: string): Promise<string> => {
  const context = { db: byInvite.database.db, clock: byInvite.clock, publicUrl: 'http://localhost:8080' };
  const { link } = await invite(context, { kind: 'operator', name: 'root' }, email);
  return new URL(link).searchParams.get('invite') ?? '';
};

it(row('Contract', 44), async () => {
  const register = async (email: string, token?: string, at = byInvite) => {
    const { status, body } = await at.ask('POST', '/auth/register', { body: { email, password, invite: token } });
    return [status, (body as { error?: string }).error];
  };
  const refused = [403, 'sign-up is by invitation here'];
  expect(await register('ann@example.com')).toEqual(refused);
  const ann = await invited('ann@example.com');
  const bob = await invited('bob@example.com');
  const late = await invited('late@example.com');
  expect(await register('ann@example.com', bob)).toEqual(refused);
  expect(await register('ann@example.com', 'a guess')).toEqual(refused);
  byInvite.pass(7 * DAY - SECOND);
  expect((await register('ann@example.com', ann))[0]).toBe(201);
  expect(await register('ann@example.com', ann)).toEqual(refused);
  byInvite.pass(SECOND);
  expect(await register('late@example.com', late)).toEqual(refused);
  expect(await register('ann@example.com', ann, closed)).toEqual([403, 'sign-up is closed here']);
});
