// Sessions: sign in, list sessions, end the current session or another session.
import type { Credentials, LoggedIn, UserSession } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { networkOf } from '@tunnel/rules/net';
import { judgeLogin, type LoginVerdict, normalizeAddress } from '@tunnel/rules/sign-in';
import { sha256Hex } from '@tunnel/runtime';
import { sql, type Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { MasterKey } from '../../db/master-key.ts';
import { isUuid, type Schema } from '../../db/schema.ts';
import { LIMITS } from '../../limits.ts';
import { writeAudit } from '../shared/audit.ts';
import type { UserActor } from '../shared/service-context.ts';
import type { AuthContext, Caller } from './auth-context.ts';
import { type LoginAttempt } from './login-attempts.rules.ts';
import { lockPassword } from './own-password.ts';
import { endFamily, giveRefreshToken } from './refresh-tokens.ts';
import { presentUser, SHOWN_USER_COLUMNS, type ShownUserRow } from './users.ts';

/**
 * Maximum number of sessions per account. A further sign-in ends the least recently used session.
 * @limit accounts: Sessions per account | the least recently used session ends
 */
const SESSIONS_PER_ACCOUNT_MAX = 100;
/** Maximum stored length of a session's user agent. */
const USER_AGENT_MAX_CHARACTERS = 300;

type Account = ShownUserRow & { readonly password_hash: string | null; readonly epoch: number };

export interface Login {
  readonly body: LoggedIn;
  readonly refreshToken: string;
  readonly familyId: string;
}

/** Signs in with a password. For a stranger, the error and the response time are the same for every address. */
export const logIn = async (context: AuthContext, input: Credentials, caller: Caller): Promise<Login> => {
  const { db, clock, passwords, accessTokens } = context;
  const email = normalizeAddress(input.email);
  const account = await findAccount(db, email);
  const passwordMatches = await passwords.matches(account?.password_hash ?? null, input.password);
  const verdict = judge(account, passwordMatches);
  if (verdict !== 'welcome' || account === undefined) {
    // The rejection is audited even for an address without an account; otherwise the response time would reveal whether the account
    // exists.
    await auditRefusal(db, verdict, account?.id, email);
    throw refusalOf(verdict, account?.auth_method ?? '');
  }
  const upgraded = await upgradedHash(context, account, input.password);
  const session = await startSession(db, {
    userId: account.id,
    seen: account,
    upgraded,
    caller,
    now: clock.now(),
  });
  const body = { access_token: await accessTokens.issue(account), user: presentUser(account) };
  return { body, ...session };
};

/**
 * Value that marks the browser in which an account was registered, until the given time. Derived from the master key, so that the
 * database contains no usable value.
 */
export const registrationMark = (masterKey: MasterKey, userId: string, until: number): string =>
  masterKey.derive('registration', `${userId} ${until}`).toString('base64url');

/**
 * Starts a session without a password, for a user who has just verified the address of an account. Returns null if the account is not
 * allowed to sign in.
 */
export const signInVerified = async (
  { db, clock }: Pick<AuthContext, 'db' | 'clock'>,
  userId: string,
  caller: Caller,
): Promise<Omit<Login, 'body'> | null> => {
  const account = await db
    .selectFrom('users')
    .select(['password_hash', 'epoch'])
    .where('id', '=', userId)
    .where('status', '=', 'active')
    .where('auth_method', '=', 'password')
    .where('email_verified_at', 'is not', null)
    .executeTakeFirst();
  if (account === undefined) return null;
  return startSession(db, { userId, seen: account, upgraded: null, caller, now: clock.now() });
};

/**
 * Describes the origin of a sign-in attempt, and whether the account knows its network or device. A single statement, the same for an
 * address without an account. `shown` is the refresh token sent with the attempt, possibly of a session that ended long ago, or null.
 */
export const describeAttempt = async (
  { db }: Pick<AuthContext, 'db'>,
  { email: typed }: Credentials,
  { address }: Caller,
  shown: string | null,
): Promise<LoginAttempt> => {
  const email = normalizeAddress(typed);
  const network = networkOf(address);
  const { rows } = await sql<{ device: string | null; is_known: boolean }>`
    select
      (
        select family.id from refresh_tokens token
        join refresh_families family on family.id = token.family_id
        join users on users.id = family.user_id
        where token.token_hash = ${shown === null ? '' : sha256Hex(shown)} and users.email = ${email}
      ) as device,
      exists (
        select from refresh_families family join users on users.id = family.user_id
        where users.email = ${email} and family.network = ${network}
      ) as is_known
  `.execute(db);
  const { device = null, is_known: isKnownNetwork = false } = rows[0] ?? {};
  // The address is hashed, because users can type anything, of any length.
  return { account: sha256Hex(email), network, device, isKnownNetwork };
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

/**
 * Writes an audit entry for a rejected sign-in. The entry has only a hash of the address, because users sometimes type a password into
 * the wrong field.
 */
const auditRefusal = (db: Db, verdict: LoginVerdict, userId: string | undefined, email: string): Promise<void> =>
  writeAudit(db, {
    actor: 'system',
    action: 'login.refused',
    ...(userId === undefined ? {} : { userId }),
    details: { reason: verdict, ...(userId === undefined ? { email_sha256: sha256Hex(email) } : {}) },
  });

/** Hashes the password again if the stored hash is weaker than required now. Returns null if the stored hash is strong enough. */
const upgradedHash = async (
  { passwords }: Pick<AuthContext, 'passwords'>,
  { password_hash: stored }: Account,
  password: string,
): Promise<string | null> => (stored !== null && passwords.isOutdated(stored) ? passwords.hash(password) : null);

export interface NewSession {
  readonly userId: string;
  /** Password hash and epoch of the account when the password was checked. */
  readonly seen: { readonly password_hash: string | null; readonly epoch: number };
  /** Stronger hash of the same password, or null if the stored hash stays. */
  readonly upgraded: string | null;
  readonly caller: Caller;
  readonly now: number;
}

/** Starts the family of refresh tokens for a sign-in. Returns the first refresh token and the id of the family. */
const startSession = (db: Db, { userId, seen, upgraded, caller, now }: NewSession): Promise<Omit<Login, 'body'>> =>
  db.transaction().execute(async (trx) => {
    const user = await lockPassword(trx, userId);
    // Hashing takes a while. A password reset or a suspension in the meantime ends all sessions, so this session must not start.
    if (user?.epoch !== seen.epoch) throw new Fault('LOGIN_WRONG');
    if (upgraded !== null && user.password_hash === seen.password_hash) {
      await trx.updateTable('users').set({ password_hash: upgraded }).where('id', '=', userId).execute();
    }
    const { id: familyId } = await trx
      .insertInto('refresh_families')
      .values({
        user_id: userId,
        user_agent: caller.userAgent.slice(0, USER_AGENT_MAX_CHARACTERS),
        address: caller.address,
        network: networkOf(caller.address),
        created_at: new Date(now),
        last_used_at: new Date(now),
      })
      .returning('id')
      .executeTakeFirstOrThrow();
    await endOldest(trx, userId, now);
    const refreshToken = await giveRefreshToken(trx, familyId, now);
    await writeAudit(trx, { actor: `user:${userId}`, action: 'login', userId, details: { session_id: familyId } });
    return { refreshToken, familyId };
  });

/** Ends the least recently used sessions above the account's limit. */
const endOldest = async (trx: Transaction<Schema>, userId: string, now: number): Promise<void> => {
  await trx
    .updateTable('refresh_families')
    .set({ revoked_at: new Date(now) })
    .where('id', 'in', (family) =>
      family
        .selectFrom('refresh_families')
        .select('id')
        .where('user_id', '=', userId)
        .where('revoked_at', 'is', null)
        .orderBy('last_used_at', 'desc')
        .orderBy('created_at', 'desc')
        .offset(SESSIONS_PER_ACCOUNT_MAX),
    )
    .execute();
};

/** Ends the session of a refresh token. An unknown token has no effect. */
export const logOut = async ({ db, clock }: Pick<AuthContext, 'db' | 'clock'>, refreshToken: string): Promise<void> => {
  await db.transaction().execute(async (trx) => {
    const family = await trx
      .selectFrom('refresh_tokens as token')
      .innerJoin('refresh_families as family', 'family.id', 'token.family_id')
      .select(['family.id', 'family.user_id'])
      .where('token.token_hash', '=', sha256Hex(refreshToken))
      .executeTakeFirst();
    if (family === undefined || !(await endFamily(trx, family.id, clock.now()))) return;
    const userId = family.user_id;
    await writeAudit(trx, { actor: `user:${userId}`, action: 'logout', userId, details: { session_id: family.id } });
  });
};

/** Lists the caller's sessions, most recently used first. */
export const listSessions = async (
  { db, clock }: Pick<AuthContext, 'db' | 'clock'>,
  { userId }: UserActor,
  /** Refresh token of the request, which identifies the current session, or null. */
  refreshToken: string | null,
): Promise<UserSession[]> => {
  // Sessions last used before this time have expired.
  const since = new Date(clock.now() - LIMITS.REFRESH_TOKEN_SECS * 1000);
  const rows = await db
    .selectFrom('refresh_families as family')
    .select((family) => [
      'family.id',
      'family.created_at',
      'family.last_used_at',
      'family.user_agent',
      'family.address',
      family
        .exists(
          family
            .selectFrom('refresh_tokens as token')
            .select('token.family_id')
            .whereRef('token.family_id', '=', 'family.id')
            .where('token.token_hash', '=', refreshToken === null ? '' : sha256Hex(refreshToken)),
        )
        .as('current'),
    ])
    .where('family.user_id', '=', userId)
    .where('family.revoked_at', 'is', null)
    .where('family.last_used_at', '>', since)
    .orderBy('family.last_used_at', 'desc')
    .orderBy('family.id')
    .execute();
  return rows.map(({ created_at, last_used_at, current, ...row }) => ({
    ...row,
    current: Boolean(current),
    created_at: created_at.toISOString(),
    last_used_at: last_used_at.toISOString(),
  }));
};

/** Ends another session of the caller. The session's access token remains valid for up to 15 minutes. */
export const endSession = async (
  { db, clock }: Pick<AuthContext, 'db' | 'clock'>,
  { userId }: UserActor,
  sessionId: string,
): Promise<void> => {
  if (!isUuid(sessionId)) throw new Fault('LOGIN_SESSION_UNKNOWN');
  await db.transaction().execute(async (trx) => {
    const ended = await trx
      .updateTable('refresh_families')
      .set({ revoked_at: new Date(clock.now()) })
      .where('id', '=', sessionId)
      .where('user_id', '=', userId)
      .where('revoked_at', 'is', null)
      .returning('id')
      .executeTakeFirst();
    if (ended === undefined) throw new Fault('LOGIN_SESSION_UNKNOWN');
    await writeAudit(trx, {
      actor: `user:${userId}`,
      action: 'session.ended',
      userId,
      details: { session_id: ended.id },
    });
  });
};
