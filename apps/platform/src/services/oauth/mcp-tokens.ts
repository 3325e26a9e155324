// Access tokens of programs that somebody connected: for /mcp alone, as long as their grant lives.

import { OAUTH_SCOPES, type OauthScope } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import { SignedTokens } from '../auth/signed-tokens.ts';
import type { SigningKeys } from '../auth/signing-keys.ts';
import type { UserCache } from '../auth/users.ts';
import type { OauthAddresses } from './oauth-addresses.ts';

/** A program at /mcp: whose account it works for, and what it may do there. */
export interface McpBearer {
  readonly userId: string;
  readonly grantId: string;
  readonly clientId: string;
  readonly scopes: readonly OauthScope[];
  /** The account's, when the token was signed. */
  readonly epoch: number;
}

export interface McpTokens {
  /**
   * null: not one for /mcp, or it has run out, or its grant has ended, by its owner or a new password. Throws ACCOUNT_SUSPENDED. The
   * account and the grant are as they were at most two seconds ago.
   */
  check(token: string): Promise<McpBearer | null>;
  /** Of one that was let in: whether its grant lives on. Its token may have run out meanwhile. */
  isAlive(bearer: McpBearer): Promise<boolean>;
}

/** A client id is a URL, which may be long; the rest has some 600 characters. */
const TOKEN_MAX_CHARACTERS = 8192;

export interface SignedMcpTokensOptions {
  readonly keys: SigningKeys;
  readonly clock: Clock;
  readonly addresses: OauthAddresses;
  readonly users: Pick<UserCache, 'find'>;
  /** Whether it lives. */
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

  /** By the token alone; null: not one for /mcp, or it has run out. */
  claimsOf(token: string): Promise<McpBearer | null> {
    return this.#signed.check(token);
  }

  async check(token: string): Promise<McpBearer | null> {
    const claims = await this.#signed.check(token);
    if (claims === null) return null;
    const known = await this.#options.users.find(claims.userId);
    // Before the epoch: suspending raises it, and the owner should learn why.
    if (known?.user.status === 'suspended') throw new Fault('ACCOUNT_SUSPENDED');
    return (await this.isAlive(claims)) ? claims : null;
  }

  async isAlive({ userId, epoch, grantId }: McpBearer): Promise<boolean> {
    const { users, grants } = this.#options;
    // A suspension raises it too.
    const known = await users.find(userId);
    return known?.epoch === epoch && (await grants.isAlive(grantId));
  }
}

const scopesOf = (text: string): OauthScope[] => {
  const named = text.split(' ');
  return OAUTH_SCOPES.filter((scope) => named.includes(scope));
};
