// Access tokens of connected apps, accepted only at /mcp and only while their grant is active.

import { OAUTH_SCOPES, type OauthScope } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import { SignedTokens } from '../auth/signed-tokens.ts';
import type { SigningKeys } from '../auth/signing-keys.ts';
import type { UserCache } from '../auth/users.ts';
import type { OauthAddresses } from './oauth-addresses.ts';

/** Authenticated app at /mcp, with its account and its scopes. */
export interface McpBearer {
  readonly userId: string;
  readonly grantId: string;
  readonly clientId: string;
  readonly scopes: readonly OauthScope[];
  /** Epoch of the account when the token was signed. */
  readonly epoch: number;
}

export interface McpTokens {
  /**
   * Checks an access token. Returns null if the token is not for /mcp or has expired, or if the grant was ended by its owner or by a new
   * password. Throws ACCOUNT_SUSPENDED. The state of account and grant is at most two seconds old.
   */
  check(token: string): Promise<McpBearer | null>;
  /** Returns true if the grant of an admitted app is still active. The app's token may have expired meanwhile. */
  isAlive(bearer: McpBearer): Promise<boolean>;
}

/** Maximum length of an access token. A client id is a URL and can be long; the rest has about 600 characters. */
const TOKEN_MAX_CHARACTERS = 8192;

export interface SignedMcpTokensOptions {
  readonly keys: SigningKeys;
  readonly clock: Clock;
  readonly addresses: OauthAddresses;
  readonly users: Pick<UserCache, 'find'>;
  /** Source of the state of grants. Returns true if the grant was not revoked. */
  readonly grants: { isAlive(grantId: string): Promise<boolean> | boolean };
}

export class SignedMcpTokens implements McpTokens {
  readonly #signed: SignedTokens<McpBearer>;
  readonly #options: SignedMcpTokensOptions;

  constructor(options: SignedMcpTokensOptions) {
    const { keys, clock, addresses } = options;
    this.#options = options;
    this.#signed = new SignedTokens({
      keys,
      clock,
      issuer: addresses.issuer,
      audience: addresses.resource,
      typ: 'at+jwt',
      maxCharacters: TOKEN_MAX_CHARACTERS,
      read: ({ sub: userId, epoch, grant_id: grantId, client_id: clientId, scope }) => {
        if (typeof epoch !== 'number' || typeof grantId !== 'string' || typeof clientId !== 'string') return null;
        return typeof scope === 'string' ? { userId, epoch, grantId, clientId, scopes: scopesOf(scope) } : null;
      },
    });
  }

  issue({ userId, epoch, grantId, clientId, scopes }: McpBearer): Promise<string> {
    return this.#signed.issue(userId, { epoch, grant_id: grantId, client_id: clientId, scope: scopes.join(' ') });
  }

  /** Returns the claims of a token without checking account and grant. Returns null if the token is not for /mcp or has expired. */
  claimsOf(token: string): Promise<McpBearer | null> {
    return this.#signed.check(token);
  }

  async check(token: string): Promise<McpBearer | null> {
    const claims = await this.#signed.check(token);
    if (claims === null) return null;
    const known = await this.#options.users.find(claims.userId);
    // The suspension is checked before the epoch: a suspension increments the epoch too, and the owner should learn the reason.
    if (known?.user.status === 'suspended') throw new Fault('ACCOUNT_SUSPENDED');
    return (await this.isAlive(claims)) ? claims : null;
  }

  async isAlive({ userId, epoch, grantId }: McpBearer): Promise<boolean> {
    const { users, grants } = this.#options;
    // The epoch also changes when the account is suspended.
    const known = await users.find(userId);
    return known?.epoch === epoch && (await grants.isAlive(grantId));
  }
}

const scopesOf = (text: string): OauthScope[] => {
  const named = text.split(' ');
  return OAUTH_SCOPES.filter((scope) => named.includes(scope));
};
