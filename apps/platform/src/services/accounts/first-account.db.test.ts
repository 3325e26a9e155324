import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ApiError, Registered, SignUpTerms } from '@tunnel/contract';
import { createLogger, Secret } from '@tunnel/runtime';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { MasterKey } from '../../db/master-key.ts';
import { type AccountsFixture, openAccounts, PASSWORD, sortedStatuses } from '../../http/auth/accounts.fixture.ts';
import { FirstAccountLink, firstAccountToken } from './first-account.ts';
import { deleteUser } from './operator-accounts.ts';

const MASTER_KEY = new MasterKey('/key', new Secret('k'.repeat(32)));
const OPERATOR = { kind: 'operator', name: 'root' } as const;

let fixture: AccountsFixture;
beforeEach(async () => {
  fixture = await openAccounts({ settings: { sign_up: 'invite' } });
});
afterEach(() => fixture.close());

const tokenNow = (masterKey = MASTER_KEY): Promise<string | null> =>
  firstAccountToken({ db: fixture.database.db, masterKey, now: fixture.clock.now() });

const register = (email: string, invite: string): Promise<Response> =>
  fixture.post('/auth/register', { email, password: PASSWORD, invite });

const termsOf = async (invite: string): Promise<SignUpTerms> =>
  (await (await fixture.ask('GET', `/auth/sign-up?invite=${invite}`)).json()) as SignUpTerms;

const BY_INVITATION = [403, 'SIGN_UP_BY_INVITATION'];
const refusalOf = async (answer: Response): Promise<[number, string | undefined]> => [
  answer.status,
  ((await answer.json()) as ApiError).code,
];

it('the first-account invitation is one per database, survives restarts and concurrent starts, and does not expire', async () => {
  const tokens = new Set(await Promise.all(Array.from({ length: 5 }, () => tokenNow())));
  await fixture.clock.advance(400 * 86_400_000);
  tokens.add(await tokenNow());
  expect(tokens.size).toBe(1);
  const [token] = tokens;
  expect(token).toMatch(/^[\w-]{43}$/);
  expect(await termsOf(token ?? '')).toEqual({ sign_up: 'invite', invite_valid: true, invited_email: null });
  const rows = await fixture.database.db.selectFrom('invites').selectAll().execute();
  expect(rows).toHaveLength(1);
  expect(JSON.stringify(rows)).not.toContain(token);
});

it('the first-account invitation creates one account with any address, which must still be verified', async () => {
  const token = (await tokenNow()) ?? '';
  const answer = await register('first@example.com', token);
  expect([answer.status, ((await answer.json()) as Registered).email_verified]).toEqual([201, undefined]);
  const early = await fixture.post('/auth/login', { email: 'first@example.com', password: PASSWORD });
  expect(early.status).not.toBe(200);
  expect(await refusalOf(await register('second@example.com', token))).toEqual(BY_INVITATION);
  expect(await termsOf(token)).toMatchObject({ invite_valid: false });
  expect(await tokenNow()).toBeNull();
});

it('the first-account invitation works for one of several concurrent registrations', async () => {
  const token = (await tokenNow()) ?? '';
  const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => register(`racer-${n}@example.com`, token)));
  expect(sortedStatuses(answers)).toEqual([201, ...Array.from({ length: 7 }, () => 403)]);
  expect(await fixture.database.db.selectFrom('users').select('id').execute()).toHaveLength(1);
});

it('the first-account invitation is void once an account was created in another way', async () => {
  const token = (await tokenNow()) ?? '';
  const open = await openAccounts({ settings: { sign_up: 'open' }, beside: fixture });
  await open.register('other@example.com');
  expect(await refusalOf(await register('first@example.com', token))).toEqual(BY_INVITATION);
  expect(await tokenNow()).toBeNull();
  expect(await fixture.database.db.selectFrom('invites').selectAll().execute()).toEqual([]);
});

it('after the last account is deleted, the next start creates a new first-account invitation and the old one stays used', async () => {
  const token = (await tokenNow()) ?? '';
  await register('first@example.com', token);
  const { clock, database } = fixture;
  await deleteUser({ db: database.db, clock }, OPERATOR, 'first@example.com');
  await clock.advance(1);
  const next = (await tokenNow()) ?? '';
  expect(next).not.toBe(token);
  expect(await refusalOf(await register('again@example.com', token))).toEqual(BY_INVITATION);
  expect((await register('again@example.com', next)).status).toBe(201);
});

it('a new master key replaces the first-account invitation', async () => {
  const token = (await tokenNow()) ?? '';
  const next = (await tokenNow(new MasterKey('/key', new Secret('n'.repeat(32))))) ?? '';
  expect(await refusalOf(await register('first@example.com', token))).toEqual(BY_INVITATION);
  expect((await register('first@example.com', next)).status).toBe(201);
});

it('the first-account link file is private, and deleted once an account exists or sign-up is not by invitation', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'tunnel-first-'));
  const file = join(dataDir, 'first-account-link');
  const logger = createLogger({ level: 'silent', format: 'json' });
  const prepared = async (sign_up: 'open' | 'invite' | 'closed'): Promise<string | null> => {
    const settings = { sign_up, public_url: 'https://tunnels.example.com/' };
    const link = new FirstAccountLink({ dataDir, settings, logger });
    await link.prepare(fixture.database.db, MASTER_KEY, fixture.clock.now());
    return existsSync(file) ? readFileSync(file, 'utf8') : null;
  };
  const token = (await tokenNow()) ?? '';
  expect(await prepared('invite')).toBe(`https://tunnels.example.com/app/signup?invite=${token}\n`);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(await prepared('open')).toBeNull();
  expect(await prepared('invite')).toContain(token);
  await register('first@example.com', token);
  expect(await prepared('invite')).toBeNull();
  rmSync(dataDir, { recursive: true });
});
