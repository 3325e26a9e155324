// Validation of an authorization request in a query. As long as client and redirect URI are not trusted, errors are shown to the user on
// a page; afterwards, errors are sent to the client at its redirect URI.

import { allowsRedirectUri, problemOfRedirectUri } from '@tunnel/rules/sign-in';
import type { OauthClient } from './client-document.rules.ts';

/** Maximum length of `state`, which the client gets back with the response: a random value, or a small encrypted note. */
const OAUTH_STATE_MAX_CHARS = 2000;

/** Returns all values of a query parameter. */
export type QueryValues = (name: string) => readonly string[];

/** Resource and scopes offered by this authorization server. */
export interface AuthorizationOffer<S extends string> {
  readonly resource: string;
  readonly scopes: readonly S[];
  /** Scope granted to a request without the scope parameter. */
  readonly defaultScope: S;
}

export interface AuthorizeRequest<S extends string> {
  readonly redirectUri: string;
  readonly codeChallenge: string;
  readonly scopes: readonly S[];
  readonly state: string | null;
}

/** Error codes of an invalid authorization request, from RFC 6749 and RFC 8707. */
export type AuthorizeError = 'invalid_request' | 'unsupported_response_type' | 'invalid_scope' | 'invalid_target';

export type AuthorizeVerdict<S extends string> =
  | { readonly kind: 'asked'; readonly request: AuthorizeRequest<S> }
  /** The request is invalid; the client gets the error at its redirect URI. */
  | {
      readonly kind: 'refused';
      readonly redirectUri: string;
      readonly state: string | null;
      readonly error: AuthorizeError;
      readonly description: string;
    }
  /** The client or redirect URI is not trusted. The user sees the error on a page, and the browser must not be redirected. */
  | { readonly kind: 'untrusted'; readonly reason: string };

/** Returns the client id of a query, or null if the query has no client id or several. */
export const clientIdOf = (values: QueryValues): string | null => {
  const [id = '', ...others] = values('client_id');
  return id === '' || others.length > 0 ? null : id;
};

export const judgeAuthorizeRequest = <S extends string>(
  values: QueryValues,
  { redirectUris }: Pick<OauthClient, 'redirectUris'>,
  offer: AuthorizationOffer<S>,
): AuthorizeVerdict<S> => {
  const [redirectUri = '', ...others] = values('redirect_uri');
  if (redirectUri === '' || others.length > 0) return { kind: 'untrusted', reason: 'the request has no redirect_uri' };
  const problem = problemOfRedirectUri(redirectUri);
  if (problem !== null) return { kind: 'untrusted', reason: `the redirect_uri ${problem}` };
  if (!allowsRedirectUri(redirectUris, redirectUri))
    return { kind: 'untrusted', reason: 'the redirect_uri is not registered for the client' };
  const state = values('state')[0] ?? null;
  const refused = refusalOf(values, offer);
  if (refused !== null) return { kind: 'refused', redirectUri, state, ...refused };
  const scopes = scopesOf(values('scope')[0] ?? '', offer);
  if (scopes === null) {
    const description = `scope can only include ${offer.scopes.join(', ')}`;
    return { kind: 'refused', redirectUri, state, error: 'invalid_scope', description };
  }
  return { kind: 'asked', request: { redirectUri, codeChallenge: values('code_challenge')[0] ?? '', scopes, state } };
};

interface Refusal {
  readonly error: AuthorizeError;
  readonly description: string;
}

/** Parameters that must not occur twice (RFC 6749, section 3.1). */
const SINGLE = ['response_type', 'code_challenge', 'code_challenge_method', 'scope', 'state'];
/** Format of a SHA-256 hash in base64url. */
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/;
/** Format of `state` (RFC 6749, appendix A.5). */
const STATE = /^[ -~]*$/;

const refusalOf = <S extends string>(values: QueryValues, { resource }: AuthorizationOffer<S>): Refusal | null => {
  const one = (name: string): string => values(name)[0] ?? '';
  const invalid = (description: string): Refusal => ({ error: 'invalid_request', description });
  const twice = SINGLE.find((name) => values(name).length > 1);
  if (twice !== undefined) return invalid(`${twice} is given twice`);
  if (one('response_type') === '') return invalid('response_type is missing');
  if (one('response_type') !== 'code')
    return { error: 'unsupported_response_type', description: 'response_type must be code' };
  if (one('code_challenge_method') !== 'S256') return invalid('code_challenge_method must be S256');
  if (!CHALLENGE.test(one('code_challenge'))) return invalid('code_challenge must have 43 characters (S256)');
  if (!STATE.test(one('state'))) return invalid('state must be printable ASCII');
  if (one('state').length > OAUTH_STATE_MAX_CHARS)
    return invalid(`state must have at most ${OAUTH_STATE_MAX_CHARS} characters`);
  const resources = values('resource');
  if (resources.length === 0 || resources.some((each) => each !== resource))
    return { error: 'invalid_target', description: `resource must be ${resource}` };
  return null;
};

const scopesOf = <S extends string>(text: string, offer: AuthorizationOffer<S>): readonly S[] | null => {
  if (text.trim() === '') return [offer.defaultScope];
  return parseScopes(text, offer.scopes);
};

/**
 * Parses a list of scopes and returns the scopes in the order of `among`. Returns null if the list is empty or has a scope outside
 * `among`.
 */
export const parseScopes = <S extends string>(text: string, among: readonly S[]): readonly S[] | null => {
  const named = new Set(text.split(' ').filter((name) => name !== ''));
  const found = among.filter((scope) => named.has(scope));
  return found.length === 0 || found.length < named.size ? null : found;
};
