// Authenticates callers of /mcp: an account by one of its API keys, or a program connected by the account's owner, by a token valid only
// for /mcp.

import { Fault, isErrorCode } from '@tunnel/errors';
import { SCOPES, type Scope } from '@tunnel/mcp/tools';
import { looksLikeApiKey } from '../services/keys/api-key.rules.ts';
import type { KnownKeys } from '../services/keys/verify-key.ts';
import type { McpTokens } from '../services/oauth/mcp-tokens.ts';
import type { UserActor } from '../services/shared/service-context.ts';

export interface McpCaller {
  readonly actor: UserActor;
  readonly scopes: ReadonlySet<Scope>;
  /** The key or grant used by the caller, as shown in the audit log and to the caller. */
  readonly access: McpAccess;
  /**
   * Checks whether the key or grant is still valid, as of at most two seconds ago. A call may take minutes, and the owner may revoke the
   * access meanwhile.
   */
  readonly isStillIn: () => Promise<boolean>;
}

export type McpAccess =
  | { readonly kind: 'api_key'; readonly key_id: string }
  | { readonly kind: 'connected_app'; readonly grant_id: string; readonly client_id: string };

export interface McpDoorDeps {
  readonly keys: Pick<KnownKeys, 'find' | 'recent' | 'accountOf'>;
  readonly tokens: McpTokens;
}

interface McpDoor extends McpDoorDeps {
  /** Runs a database lookup when the account's turn has come. A null account means a caller not known yet. */
  readonly lookUp: <T>(account: string | null, work: () => Promise<T>) => Promise<T>;
}

/** Scopes of an API key. The account's owner created the key and has all these permissions anyway. */
const ALL_SCOPES: ReadonlySet<Scope> = new Set(SCOPES);

const BEARER = /^bearer +(\S.*)$/i;
const TOKEN = /^[\w.~+/=-]+$/;

/** Returns true if the header contains a bearer token, valid or not. */
export const showsBearer = (authorization: string | undefined): boolean => BEARER.test(authorization ?? '');

/**
 * Identifies the caller by the Authorization header. Throws AUTH_TOKEN_MISSING, a fault for an invalid key, ACCESS_TOKEN_INVALID or
 * ACCOUNT_SUSPENDED.
 */
export const authenticateCaller = async (
  { keys, tokens, lookUp }: McpDoor,
  authorization: string | undefined,
): Promise<McpCaller> => {
  const token = BEARER.exec(authorization ?? '')?.[1]?.trimEnd();
  if (token === undefined) throw new Fault('AUTH_TOKEN_MISSING');
  if (looksLikeApiKey(token)) return callerOfKey({ keys, lookUp }, token);
  // Tokens from POST /auth/login have a different audience and are rejected here.
  const bearer = TOKEN.test(token) ? await tokens.check(token) : null;
  if (bearer === null) throw new Fault('ACCESS_TOKEN_INVALID');
  return {
    actor: { kind: 'user', userId: bearer.userId },
    scopes: new Set(bearer.scopes),
    access: { kind: 'connected_app', grant_id: bearer.grantId, client_id: bearer.clientId },
    isStillIn: () => tokens.isAlive(bearer),
  };
};

const callerOfKey = async ({ keys, lookUp }: Pick<McpDoor, 'keys' | 'lookUp'>, key: string): Promise<McpCaller> => {
  const answer = keys.recent(key) ?? (await lookUp(keys.accountOf(key), () => keys.find(key)));
  if (!answer.ok) throw new Fault(isErrorCode(answer.code) ? answer.code : 'AUTH_TOKEN_INVALID');
  return {
    actor: { kind: 'user', userId: answer.account.account_id },
    scopes: ALL_SCOPES,
    access: { kind: 'api_key', key_id: answer.key_id },
    isStillIn: async () => (await keys.find(key)).ok,
  };
};
