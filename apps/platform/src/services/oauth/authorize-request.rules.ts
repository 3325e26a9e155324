// An authorization request as it comes in a query: what it must say, and who is told when it does not. While client and redirect URI are
// not trusted it is the person in front of the browser, on a page; afterwards the client, at its redirect URI.

import { allowsRedirectUri, problemOfRedirectUri } from '@tunnel/rules/sign-in';
import type { OauthClient } from './client-document.rules.ts';

/** what a client wants to hear again with the answer: a random value, or a small sealed note */
const OAUTH_STATE_MAX_CHARS = 2000;

/** All values that a query has for a name. */
export type QueryValues = (name: string) => readonly string[];

/** What this authorization server has to offer. */
export interface AuthorizationOffer<S extends string> {
  readonly resource: string;
  readonly scopes: readonly S[];
  /** When none is asked for. */
  readonly defaultScope: S;
}

export interface AuthorizeRequest<S extends string> {
  readonly redirectUri: string;
  readonly codeChallenge: string;
  readonly scopes: readonly S[];
  readonly state: string | null;
}

/** As RFC 6749 and RFC 8707 name them. */
export type AuthorizeError = 'invalid_request' | 'unsupported_response_type' | 'invalid_scope' | 'invalid_target';

export type AuthorizeVerdict<S extends string> =
  | { readonly kind: 'asked'; readonly request: AuthorizeRequest<S> }
  /** For the client. */
  | {
      readonly kind: 'refused';
      readonly redirectUri: string;
      readonly state: string | null;
      readonly error: AuthorizeError;
      readonly description: string;
    }
  /** For a page: nobody may be led anywhere. */
  | { readonly kind: 'untrusted'; readonly reason: string };

/** null: there is none, or there are several. */
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

/** RFC 6749, 3.1: none of them may come twice. */
const SINGLE = ['response_type', 'code_challenge', 'code_challenge_method', 'scope', 'state'];
/** What a SHA-256 is in base64url. */
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/;
/** RFC 6749, appendix A.5. */
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

/** Those that are named, in the order of `among`; null: none, or one that is not among them. */
export const parseScopes = <S extends string>(text: string, among: readonly S[]): readonly S[] | null => {
  const named = new Set(text.split(' ').filter((name) => name !== ''));
  const found = among.filter((scope) => named.has(scope));
  return found.length === 0 || found.length < named.size ? null : found;
};
