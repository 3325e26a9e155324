// Rules for grants: how a presented code or refresh token is handled, and when a grant has ended.
import { decideRefresh, type RefreshRules } from '@tunnel/rules/sign-in';

/** Permission that a user gave an app, and the current state of the user's account. */
export interface GrantFacts {
  readonly clientId: string;
  /** Audience of the grant's access tokens. */
  readonly resource: string;
  readonly scopes: readonly string[];
  /** True if the grant was ended by its owner or by the app, or because a code or token was used twice. */
  readonly revoked: boolean;
  /** Epoch of the account when the grant was created. */
  readonly epoch: number;
  readonly user: { readonly status: 'active' | 'suspended'; readonly epoch: number };
}

/**
 * Returns true if the grant is active. A new password or a suspension increments the account's epoch, which ends all earlier grants. An
 * ended grant never becomes active again.
 */
export const isGrantAlive = ({ revoked, epoch, user }: GrantFacts): boolean =>
  !revoked && user.status === 'active' && user.epoch === epoch;

export interface TokenRefusal {
  readonly kind: 'refuse';
  /** Error code of the rejection, from RFC 6749 or RFC 8707. */
  readonly error: 'invalid_grant' | 'invalid_scope' | 'invalid_target';
  /** Explanation of the rejection for users and developers. */
  readonly reason: string;
}

/** A code or token was used twice, so a second party has it. The grant ends, together with everything issued for it. */
interface FoundTwice {
  readonly kind: 'reuse';
}

const refuse = (error: TokenRefusal['error'], reason: string): TokenRefusal => ({ kind: 'refuse', error, reason });

const endedGrant = ({ user }: GrantFacts): TokenRefusal =>
  refuse(
    'invalid_grant',
    user.status === 'suspended' ? 'the account is suspended' : 'the grant has ended: connect the app again',
  );

const otherResource = ({ resource }: GrantFacts, asked: string | null): TokenRefusal | null =>
  asked === null || asked === resource ? null : refuse('invalid_target', `resource: must be ${resource}`);

// Codes: redeemed once, by the app that requested the code, within a minute.

export interface CodeFacts {
  readonly grant: GrantFacts;
  /** Redirect URI of the authorization request for the code. */
  readonly redirectUri: string;
  readonly expiresAt: number;
  readonly used: boolean;
}

export interface ShownCode {
  readonly clientId: string;
  readonly redirectUri: string;
  /** True if the PKCE verifier sent with the code matches the challenge of the authorization request. */
  readonly verifierMatches: boolean;
  /** Resource parameter of the token request, or null without the parameter. */
  readonly resource: string | null;
}

export type CodeDecision = { readonly kind: 'redeem' } | FoundTwice | TokenRefusal;

export const UNKNOWN_CODE = refuse('invalid_grant', 'the code is unknown');

/**
 * Decides on a presented code. A rejected code is not used up, so that an attacker with the code but without the verifier cannot
 * invalidate it.
 */
export const decideCode = (code: CodeFacts, shown: ShownCode, now: number): CodeDecision => {
  // Reuse is checked first, regardless of client and time: a second use means that another party has read the code.
  if (code.used) return { kind: 'reuse' };
  const { grant } = code;
  if (now >= code.expiresAt) return refuse('invalid_grant', 'the code has expired: codes are valid for a minute');
  if (!isGrantAlive(grant)) return endedGrant(grant);
  if (shown.clientId !== grant.clientId) return refuse('invalid_grant', 'the code was issued to another client');
  if (shown.redirectUri !== code.redirectUri) {
    return refuse('invalid_grant', 'redirect_uri: does not match the authorization request');
  }
  if (!shown.verifierMatches) return refuse('invalid_grant', 'code_verifier: does not match the code_challenge');
  return otherResource(grant, shown.resource) ?? { kind: 'redeem' };
};

// Refresh tokens: rotated at every use, like the refresh tokens of sign-ins.

export interface GrantTokenFacts {
  readonly grant: GrantFacts;
  readonly expiresAt: number;
  /** Time at which the token's first successor was issued; null for an unused token. */
  readonly rotatedAt: number | null;
  /** Number of successors issued for the token after the first. */
  readonly graceUses: number;
}

export interface ShownGrantToken {
  readonly clientId: string;
  /** Scopes requested for the access token; null for all granted scopes. */
  readonly scopes: readonly string[] | null;
  readonly resource: string | null;
}

export type GrantRefreshDecision =
  /** The token is exchanged. `again` is true for a repeated use within the grace period. */
  { readonly kind: 'rotate'; readonly again: boolean; readonly scopes: readonly string[] } | FoundTwice | TokenRefusal;

export const UNKNOWN_TOKEN = refuse('invalid_grant', 'the refresh token is unknown or has expired');

export const decideGrantRefresh = (
  token: GrantTokenFacts,
  shown: ShownGrantToken,
  now: number,
  rules: RefreshRules,
): GrantRefreshDecision => {
  const { grant } = token;
  if (shown.clientId !== grant.clientId) return refuse('invalid_grant', 'the token was issued to another client');
  const facts = { ...token, familyRevoked: !isGrantAlive(grant), userStatus: grant.user.status };
  const decision = decideRefresh(facts, now, rules);
  if (decision === 'reuse') return { kind: 'reuse' };
  if (decision === 'suspended' || decision === 'invalid') return endedGrant(grant);
  const { scopes } = shown;
  // The scopes are checked before the token is used up, so that an app can try again after requesting too many scopes.
  if (scopes?.some((scope) => !grant.scopes.includes(scope))) {
    return refuse(
      'invalid_scope',
      `scope: only ${grant.scopes.join(' ')} was granted; for more scopes, authorize again`,
    );
  }
  const refusal = otherResource(grant, shown.resource);
  if (refusal !== null) return refusal;
  const given = scopes === null ? grant.scopes : grant.scopes.filter((scope) => scopes.includes(scope));
  return { kind: 'rotate', again: decision === 'rotate-again', scopes: given };
};
