// Who asks at /mcp: an account by one of its API keys, or a program that its owner connected, by a token for /mcp alone.

import { Fault, isErrorCode } from '@tunnel/errors';
import { SCOPES, type Scope } from '@tunnel/mcp/tools';
import { looksLikeApiKey } from '../services/keys/api-key.rules.ts';
import type { KnownKeys } from '../services/keys/verify-key.ts';
import type { McpTokens } from '../services/oauth/mcp-tokens.ts';
import type { UserActor } from '../services/shared/service-context.ts';

export interface McpCaller {
  readonly actor: UserActor;
  readonly scopes: ReadonlySet<Scope>;
  /** By what it was let in, as the audit and the caller itself are told. */
  readonly access: McpAccess;
  /** Whether that holds still, as of at most two seconds ago: a call may take minutes, and its owner shuts it out meanwhile. */
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
  /** Runs a look-up in the database when it is the turn of the account; null: of a caller that is not known yet. */
  readonly lookUp: <T>(account: string | null, work: () => Promise<T>) => Promise<T>;
}

/** Its owner made it, and could do all of this with it anyway. */
const ALL_SCOPES: ReadonlySet<Scope> = new Set(SCOPES);

const BEARER = /^bearer +(\S.*)$/i;
const TOKEN = /^[\w.~+/=-]+$/;

/** Something was shown, though it may be good for nothing. */
export const showsBearer = (authorization: string | undefined): boolean => BEARER.test(authorization ?? '');

/** Throws AUTH_TOKEN_MISSING, one of the refusals of a key, ACCESS_TOKEN_INVALID or ACCOUNT_SUSPENDED. */
export const authenticateCaller = async (
  { keys, tokens, lookUp }: McpDoor,
  authorization: string | undefined,
): Promise<McpCaller> => {
  const token = BEARER.exec(authorization ?? '')?.[1]?.trimEnd();
  if (token === undefined) throw new Fault('AUTH_TOKEN_MISSING');
  if (looksLikeApiKey(token)) return callerOfKey({ keys, lookUp }, token);
  // Tokens of POST /auth/login are none for here: their audience is another.
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
