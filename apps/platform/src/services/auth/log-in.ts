// Lets somebody in with a password. What a stranger hears, and how long it takes, is the same for every address.

import type { Credentials, LoggedIn } from '@tunnel/contract';
import { judgeLogin, type LoginVerdict, normalizeAddress } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import { sha256Hex } from '@tunnel/runtime';
import type { Db } from '../../db/database.ts';
import { writeAudit } from '../audit.ts';
import type { AuthContext, Caller } from './auth-context.ts';
import { presentUser, SHOWN_USER_COLUMNS, type ShownUserRow } from './present-user.ts';
import { startSession } from './start-session.ts';

type Account = ShownUserRow & { readonly password_hash: string | null; readonly epoch: number };

export interface Login {
  readonly body: LoggedIn;
  readonly refreshToken: string;
}

export const logIn = async (context: AuthContext, input: Credentials, caller: Caller): Promise<Login> => {
  const { db, clock, passwords, accessTokens } = context;
  const email = normalizeAddress(input.email);
  const account = await findAccount(db, email);
  const passwordMatches = await passwords.matches(account?.password_hash ?? null, input.password);
  const verdict = judge(account, passwordMatches);
  if (verdict !== 'welcome' || account === undefined) {
    // For an address that nobody has too, else the time would tell.
    await auditRefusal(db, verdict, account?.id, email);
    throw refusalOf(verdict, account?.auth_method ?? '');
  }
  const upgraded = await upgradedHash(context, account, input.password);
  const refreshToken = await startSession(db, {
    userId: account.id,
    seen: account,
    upgraded,
    caller,
    now: clock.now(),
  });
  const body = { access_token: await accessTokens.issue(account), user: presentUser(account) };
  return { body, refreshToken };
};

const findAccount = (db: Db, email: string): Promise<Account | undefined> =>
  db
    .selectFrom('users')
    .select([...SHOWN_USER_COLUMNS, 'password_hash', 'epoch'])
    .where('email', '=', email)
    .executeTakeFirst();

const judge = (account: Account | undefined, passwordMatches: boolean): LoginVerdict =>
  judgeLogin(
    account === undefined
      ? null
      : {
          external: account.auth_method !== 'password',
          passwordMatches,
          status: account.status,
          emailVerified: account.email_verified_at !== null,
        },
  );

const refusalOf = (verdict: LoginVerdict, method: string): Fault => {
  switch (verdict) {
    case 'external':
      return new Fault('ACCOUNT_EXTERNAL', { method });
    case 'suspended':
      return new Fault('ACCOUNT_SUSPENDED');
    case 'unverified':
      return new Fault('ACCOUNT_UNVERIFIED');
    default:
      return new Fault('LOGIN_WRONG');
  }
};

/** The address itself is not kept: people type passwords into the wrong field. */
const auditRefusal = (db: Db, verdict: LoginVerdict, userId: string | undefined, email: string): Promise<void> =>
  writeAudit(db, {
    actor: 'system',
    action: 'login.refused',
    ...(userId === undefined ? {} : { userId }),
    details: { reason: verdict, ...(userId === undefined ? { email_sha256: sha256Hex(email) } : {}) },
  });

/** null: the stored one is as strong as those of today. */
const upgradedHash = async (
  { passwords }: Pick<AuthContext, 'passwords'>,
  { password_hash: stored }: Account,
  password: string,
): Promise<string | null> => (stored !== null && passwords.isOutdated(stored) ? passwords.hash(password) : null);
