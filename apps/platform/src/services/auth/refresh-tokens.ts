// Refresh tokens: 256 bits, stored as a hash. The tokens that follow from one sign-in are a family, and end together.
import type { AccessToken } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { decideRefresh, type RefreshDecision } from '@tunnel/rules/sign-in';
import { randomToken, sha256Hex } from '@tunnel/runtime';
import type { Transaction } from 'kysely';
import type { MasterKey } from '../../db/master-key.ts';
import type { Schema } from '../../db/schema.ts';
import { LIMITS } from '../../limits.ts';
import { writeAudit } from '../shared/audit.ts';
import type { AuthContext } from './auth-context.ts';

const RULES = { graceMs: LIMITS.REFRESH_GRACE_MS, graceUses: LIMITS.REFRESH_GRACE_USES };

export interface Refreshed {
  readonly body: AccessToken;
  readonly refreshToken: string;
  readonly familyId: string;
}

/** Refresh token sent by a caller, with the caller's address. */
export interface ShownToken {
  readonly refreshToken: string;
  readonly address: string;
  /** Returns true if the caller is allowed to use tokens of the family. Otherwise the token is rejected and the family does not change. */
  readonly mayUse: (familyId: string) => boolean;
}

type Outcome =
  | { readonly refused: Fault }
  | {
      readonly refused: null;
      readonly user: { id: string; epoch: number };
      readonly familyId: string;
      readonly successor: string;
    };

/** Exchanges a refresh token for an access token and a new refresh token. */
export const refresh = async (
  { db, clock, accessTokens }: Pick<AuthContext, 'db' | 'clock' | 'accessTokens'>,
  given: ShownToken,
): Promise<Refreshed> => {
  const now = clock.now();
  // Inside the transaction a rejection is a value instead of an exception, because the end of the family must be committed.
  const outcome = await db.transaction().execute((trx) => rotate(trx, given, now));
  if (outcome.refused !== null) throw outcome.refused;
  const { user, familyId, successor } = outcome;
  return { body: { access_token: await accessTokens.issue(user) }, refreshToken: successor, familyId };
};

const rotate = async (
  trx: Transaction<Schema>,
  { refreshToken, address, mayUse }: ShownToken,
  now: number,
): Promise<Outcome> => {
  const shown = await lockToken(trx, sha256Hex(refreshToken));
  if (shown !== undefined && !mayUse(shown.family_id)) return { refused: new Fault('REFRESH_INVALID') };
  const decision = decideRefresh(shown === undefined ? null : factsOf(shown), now, RULES);
  if (shown === undefined || (decision !== 'rotate' && decision !== 'rotate-again')) {
    if (shown !== undefined && decision === 'reuse') await endReused(trx, shown, now);
    return { refused: new Fault(decision === 'suspended' ? 'ACCOUNT_SUSPENDED' : 'REFRESH_INVALID') };
  }
  await noteUse(trx, shown, decision, now);
  await trx
    .updateTable('refresh_families')
    .set({ last_used_at: new Date(now), address })
    .where('id', '=', shown.family_id)
    .execute();
  const familyId = shown.family_id;
  const successor = await giveRefreshToken(trx, familyId, now);
  return { refused: null, user: { id: shown.user_id, epoch: shown.epoch }, familyId, successor };
};

/** Locks a refresh token and its family, so that concurrent uses of the token and a sign-out run one after the other. */
const lockToken = (trx: Transaction<Schema>, hash: string) =>
  trx
    .selectFrom('refresh_tokens as token')
    .innerJoin('refresh_families as family', 'family.id', 'token.family_id')
    .innerJoin('users as user', 'user.id', 'family.user_id')
    .select([
      'token.token_hash',
      'token.expires_at',
      'token.rotated_at',
      'token.grace_uses',
      'token.family_id',
      'family.revoked_at',
      'family.user_id',
      'user.status',
      'user.epoch',
    ])
    .where('token.token_hash', '=', hash)
    .forUpdate(['token', 'family'])
    .executeTakeFirst();

type LockedToken = NonNullable<Awaited<ReturnType<typeof lockToken>>>;

const factsOf = (row: LockedToken) => ({
  expiresAt: row.expires_at.getTime(),
  rotatedAt: row.rotated_at?.getTime() ?? null,
  graceUses: row.grace_uses,
  familyRevoked: row.revoked_at !== null,
  userStatus: row.status,
});

const noteUse = async (
  trx: Transaction<Schema>,
  { token_hash: hash, grace_uses: uses }: LockedToken,
  decision: RefreshDecision,
  now: number,
): Promise<void> => {
  const change = decision === 'rotate' ? { rotated_at: new Date(now) } : { grace_uses: uses + 1 };
  await trx.updateTable('refresh_tokens').set(change).where('token_hash', '=', hash).execute();
};

const endReused = async (trx: Transaction<Schema>, shown: LockedToken, now: number): Promise<void> => {
  await endFamily(trx, shown.family_id, now);
  await writeAudit(trx, {
    actor: 'system',
    action: 'session.reuse-found',
    userId: shown.user_id,
    details: { session_id: shown.family_id },
  });
};

export const giveRefreshToken = async (trx: Transaction<Schema>, familyId: string, now: number): Promise<string> => {
  const token = randomToken(32);
  await trx
    .insertInto('refresh_tokens')
    .values({
      token_hash: sha256Hex(token),
      family_id: familyId,
      created_at: new Date(now),
      expires_at: new Date(now + LIMITS.REFRESH_TOKEN_SECS * 1000),
    })
    .execute();
  return token;
};

/** Revokes all active token families of a user, which ends the user's sessions. */
export const endFamilies = async (trx: Transaction<Schema>, userId: string, now: number): Promise<void> => {
  await trx
    .updateTable('refresh_families')
    .set({ revoked_at: new Date(now) })
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .execute();
};

export const endFamily = async (trx: Transaction<Schema>, familyId: string, now: number): Promise<boolean> => {
  const ended = await trx
    .updateTable('refresh_families')
    .set({ revoked_at: new Date(now) })
    .where('id', '=', familyId)
    .where('revoked_at', 'is', null)
    .returning('id')
    .executeTakeFirst();
  return ended !== undefined;
};

/**
 * Secret that binds a token family to a browser: the browser sends the secret together with a refresh token. Derived from the master key,
 * so that the database contains no usable secret.
 */
export const refreshBinding = (masterKey: MasterKey, familyId: string): string =>
  masterKey.derive('refresh-binding', familyId).toString('base64url');
