// Tokens of grants: issued for a code or a refresh token, and revoked. A rejection is a value instead of an exception, because the end of
// a grant must be committed.
import { hash, timingSafeEqual } from 'node:crypto';
import { type OauthTokens, oauthScope } from '@tunnel/contract';
import { randomToken, sha256Hex } from '@tunnel/runtime';
import { sql, type Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import { LIMITS } from '../../limits.ts';
import {
  decideCode,
  decideGrantRefresh,
  type GrantFacts,
  type TokenRefusal,
  UNKNOWN_CODE,
  UNKNOWN_TOKEN,
} from './grant-life.rules.ts';
import { endGrant, type GrantContext, type GrantEnd } from './grants.ts';
import type { SignedMcpTokens } from './mcp-tokens.ts';

const RULES = { graceMs: LIMITS.REFRESH_GRACE_MS, graceUses: LIMITS.REFRESH_GRACE_USES };

export interface TokenContext extends GrantContext {
  readonly mcpTokens: Pick<SignedMcpTokens, 'issue' | 'claimsOf'>;
}

export type TokenAnswer = { readonly kind: 'tokens'; readonly body: OauthTokens } | TokenRefusal;

export interface CodeRequest {
  readonly code: string;
  readonly redirectUri: string;
  readonly clientId: string;
  readonly verifier: string;
  /** Resource parameter of the request, or null without the parameter. */
  readonly resource: string | null;
}

/** Issues tokens for a code. If a code is used a second time, its grant ends. */
export const redeemCode = (context: TokenContext, request: CodeRequest): Promise<TokenAnswer> =>
  answer(context, async (trx, now) => {
    const codeHash = sha256Hex(request.code);
    await lockGrantOf(trx, 'oauth_codes', codeHash);
    const row = await trx
      .selectFrom('oauth_codes as shown')
      .innerJoin('oauth_grants as grant', 'grant.id', 'shown.grant_id')
      .innerJoin('users as user', 'user.id', 'grant.user_id')
      .select([...GRANT_COLUMNS, 'shown.redirect_uri', 'shown.code_challenge', 'shown.expires_at', 'shown.used_at'])
      .where('shown.code_hash', '=', codeHash)
      .executeTakeFirst();
    if (row === undefined) return UNKNOWN_CODE;
    const times = { expiresAt: row.expires_at.getTime(), used: row.used_at !== null };
    const verifierMatches = isVerifierOf(row.code_challenge, request.verifier);
    const code = { grant: factsOf(row), redirectUri: row.redirect_uri, ...times };
    const decision = decideCode(code, { ...request, verifierMatches }, now);
    if (decision.kind === 'refuse') return decision;
    if (decision.kind === 'reuse') return { ended: row.id, reason: 'code-reused' };
    const used_at = new Date(now);
    await trx.updateTable('oauth_codes').set({ used_at }).where('code_hash', '=', codeHash).execute();
    return { grant: row, scopes: code.grant.scopes };
  });

/** Returns true if the verifier matches the challenge, with method S256 of RFC 7636. */
const isVerifierOf = (challenge: string, verifier: string): boolean => {
  const expected = Buffer.from(challenge);
  const made = Buffer.from(hash('sha256', verifier, 'base64url'));
  return expected.length === made.length && timingSafeEqual(expected, made);
};

export interface RefreshRequest {
  readonly refreshToken: string;
  readonly clientId: string;
  /** Scopes for the access token, if fewer than the granted scopes; null for all granted scopes. */
  readonly scopes: readonly string[] | null;
  readonly resource: string | null;
}

/** Issues tokens for a refresh token, which is replaced. The grace period, and the end of the grant after a reuse, work as for sign-ins. */
export const refreshGrant = (context: TokenContext, request: RefreshRequest): Promise<TokenAnswer> =>
  answer(context, async (trx, now) => {
    const tokenHash = sha256Hex(request.refreshToken);
    await lockGrantOf(trx, 'oauth_refresh_tokens', tokenHash);
    const row = await trx
      .selectFrom('oauth_refresh_tokens as shown')
      .innerJoin('oauth_grants as grant', 'grant.id', 'shown.grant_id')
      .innerJoin('users as user', 'user.id', 'grant.user_id')
      .select([...GRANT_COLUMNS, 'shown.expires_at', 'shown.rotated_at', 'shown.grace_uses'])
      .where('shown.token_hash', '=', tokenHash)
      .executeTakeFirst();
    if (row === undefined) return UNKNOWN_TOKEN;
    const times = { expiresAt: row.expires_at.getTime(), rotatedAt: row.rotated_at?.getTime() ?? null };
    const token = { grant: factsOf(row), graceUses: row.grace_uses, ...times };
    const decision = decideGrantRefresh(token, request, now, RULES);
    if (decision.kind === 'refuse') return decision;
    if (decision.kind === 'reuse') return { ended: row.id, reason: 'token-reused' };
    const change = decision.again ? { grace_uses: row.grace_uses + 1 } : { rotated_at: new Date(now) };
    await trx.updateTable('oauth_refresh_tokens').set(change).where('token_hash', '=', tokenHash).execute();
    return { grant: row, scopes: decision.scopes };
  });

const KEY_OF = { oauth_codes: 'code_hash', oauth_refresh_tokens: 'token_hash' } as const;

/**
 * Locks the grant of a code or token, so that concurrent uses and the end of the grant run one after the other. The grant is locked
 * before its codes and tokens are read. A deletion locks in the same order: first the grant, then its tokens.
 */
const lockGrantOf = async (trx: Transaction<Schema>, table: keyof typeof KEY_OF, shownHash: string): Promise<void> => {
  await sql`
    select id from oauth_grants
    where id = (select grant_id from ${sql.table(table)} where ${sql.ref(KEY_OF[table])} = ${shownHash})
    for no key update`.execute(trx);
};

const GRANT_COLUMNS = [
  'grant.id',
  'grant.user_id',
  'grant.client_id',
  'grant.scope',
  'grant.resource',
  'grant.epoch',
  'grant.revoked_at',
  'user.status as user_status',
  'user.epoch as user_epoch',
] as const;

interface GrantRow {
  readonly id: string;
  readonly user_id: string;
  readonly client_id: string;
  readonly scope: string;
  readonly resource: string;
  readonly epoch: number;
  readonly revoked_at: Date | null;
  readonly user_status: 'active' | 'suspended';
  readonly user_epoch: number;
}

const factsOf = (row: GrantRow): GrantFacts => ({
  clientId: row.client_id,
  resource: row.resource,
  scopes: row.scope.split(' '),
  revoked: row.revoked_at !== null,
  epoch: row.epoch,
  user: { status: row.user_status, epoch: row.user_epoch },
});

/** Result of checking a code or token, before new tokens are issued. */
type Verdict =
  | TokenRefusal
  | { readonly ended: string; readonly reason: NonNullable<GrantEnd['reason']> }
  | { readonly grant: GrantRow; readonly scopes: readonly string[] };

const answer = async (
  { db, clock, grants, mcpTokens }: TokenContext,
  judge: (trx: Transaction<Schema>, now: number) => Promise<Verdict>,
): Promise<TokenAnswer> => {
  const now = clock.now();
  const judged = await db.transaction().execute(async (trx) => {
    const verdict = await judge(trx, now);
    if ('ended' in verdict) {
      await endGrant(trx, { grantId: verdict.ended, actor: 'system', reason: verdict.reason, now });
      return verdict;
    }
    return 'grant' in verdict
      ? { ...verdict, refreshToken: await giveRefreshToken(trx, verdict.grant.id, now) }
      : verdict;
  });
  if ('ended' in judged) {
    grants.forget(judged.ended);
    const reason = 'the token was already used: the grant has ended, connect the app again';
    return { kind: 'refuse', error: 'invalid_grant', reason };
  }
  if (!('grant' in judged)) return judged;
  const { id: grantId, user_id: userId, client_id: clientId, epoch } = judged.grant;
  const scopes = judged.scopes.map((word) => oauthScope.parse(word));
  const body = {
    // The token has the epoch of the grant, not of the account. If the account's epoch was incremented meanwhile, this token is invalid
    // too.
    access_token: await mcpTokens.issue({ userId, epoch, grantId, clientId, scopes }),
    token_type: 'Bearer' as const,
    expires_in: LIMITS.ACCESS_TOKEN_SECS,
    refresh_token: judged.refreshToken,
    scope: scopes.join(' '),
  };
  return { kind: 'tokens', body };
};

const giveRefreshToken = async (trx: Transaction<Schema>, grantId: string, now: number): Promise<string> => {
  const token = randomToken(32);
  const created_at = new Date(now);
  const expires_at = new Date(now + LIMITS.REFRESH_TOKEN_SECS * 1000);
  await trx
    .insertInto('oauth_refresh_tokens')
    .values({ token_hash: sha256Hex(token), grant_id: grantId, created_at, expires_at })
    .execute();
  await trx.updateTable('oauth_grants').set({ last_used_at: created_at }).where('id', '=', grantId).execute();
  return token;
};

/**
 * Revokes a token (RFC 7009). The whole grant of the refresh token or access token ends. An unknown token or
 * a token of another client has no effect, and the response is the same. `clientId` is null if the request names no client.
 */
export const revokeToken = async (
  { db, clock, grants, mcpTokens }: TokenContext,
  { token, clientId }: { readonly token: string; readonly clientId: string | null },
): Promise<void> => {
  const row = await db
    .selectFrom('oauth_refresh_tokens as token')
    .innerJoin('oauth_grants as grant', 'grant.id', 'token.grant_id')
    .select(['grant.id as grantId', 'grant.user_id as userId', 'grant.client_id as clientId'])
    .where('token.token_hash', '=', sha256Hex(token))
    .executeTakeFirst();
  const found = row ?? (await mcpTokens.claimsOf(token));
  if (found === null || (clientId !== null && clientId !== found.clientId)) return;
  const { grantId, userId } = found;
  await db
    .transaction()
    .execute((trx) => endGrant(trx, { grantId, actor: `user:${userId}`, reason: 'client', now: clock.now() }));
  grants.forget(grantId);
};
