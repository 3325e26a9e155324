// Grants: what becomes of a code and of a refresh token that a program shows, and when all that comes of a grant has ended.
import { decideRefresh, type RefreshRules } from '@tunnel/rules/sign-in';

/** What somebody allowed a program, and the account as it is now. */
export interface GrantFacts {
  readonly clientId: string;
  /** Whom its access tokens are for. */
  readonly resource: string;
  readonly scopes: readonly string[];
  /** By its owner, by the program, or because something of it was found in two hands. */
  readonly revoked: boolean;
  /** The account's, when the grant was given. */
  readonly epoch: number;
  readonly user: { readonly status: 'active' | 'suspended'; readonly epoch: number };
}

/** A new password and a suspension raise the epoch, and so end all grants of before. It never lives again. */
export const isGrantAlive = ({ revoked, epoch, user }: GrantFacts): boolean =>
  !revoked && user.status === 'active' && user.epoch === epoch;

export interface TokenRefusal {
  readonly kind: 'refuse';
  /** As RFC 6749 and RFC 8707 name it. */
  readonly error: 'invalid_grant' | 'invalid_scope' | 'invalid_target';
  /** For people. */
  readonly reason: string;
}

/** It is in two hands: the grant ends, and with it everything that was given for it. */
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

// A code: shown once, by the program that asked for it, within a minute.

export interface CodeFacts {
  readonly grant: GrantFacts;
  /** Of the request that it answers. */
  readonly redirectUri: string;
  readonly expiresAt: number;
  readonly used: boolean;
}

export interface ShownCode {
  readonly clientId: string;
  readonly redirectUri: string;
  /** Whether the verifier that came with it makes the challenge that it was asked for with. */
  readonly verifierMatches: boolean;
  /** null: none was named. */
  readonly resource: string | null;
}

export type CodeDecision = { readonly kind: 'redeem' } | FoundTwice | TokenRefusal;

export const UNKNOWN_CODE = refuse('invalid_grant', 'the code is unknown');

/** One that is refused is not used up: whoever has it without the verifier must not spoil it. */
export const decideCode = (code: CodeFacts, shown: ShownCode, now: number): CodeDecision => {
  // First, whoever shows it and however late: somebody else has read it.
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

// A refresh token: rotated at every use, as those of log-ins are.

export interface GrantTokenFacts {
  readonly grant: GrantFacts;
  readonly expiresAt: number;
  /** When its first successor was given out; null: it is unused. */
  readonly rotatedAt: number | null;
  /** Successors after the first. */
  readonly graceUses: number;
}

export interface ShownGrantToken {
  readonly clientId: string;
  /** Of the access token alone; null: all that were allowed. */
  readonly scopes: readonly string[] | null;
  readonly resource: string | null;
}

export type GrantRefreshDecision =
  /** `again`: once more within its grace. */
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
  // Before it is used up: a program that asks for too much may ask again.
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
