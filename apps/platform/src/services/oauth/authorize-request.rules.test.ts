import { describe, expect, it } from 'vitest';
import { clientIdOf, judgeAuthorizeRequest, parseScopes } from './authorize-request.rules.ts';

const SCOPES = ['tunnels:read', 'requests:read', 'tunnels:close'] as const;
const RESOURCE = 'https://platform.example.com/mcp';
const OFFER = { resource: RESOURCE, scopes: SCOPES, defaultScope: 'tunnels:read' } as const;
const CLIENT = { redirectUris: ['https://app.example.com/cb', 'http://127.0.0.1/cb'] };
const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';

const GOOD: Record<string, string | string[]> = {
  response_type: 'code',
  client_id: 'https://app.example.com/client.json',
  redirect_uri: 'https://app.example.com/cb',
  code_challenge: CHALLENGE,
  code_challenge_method: 'S256',
  resource: RESOURCE,
  scope: 'requests:read tunnels:read',
  state: 'a b~!',
};

const valuesOf =
  (change: Record<string, string | string[] | undefined>) =>
  (name: string): readonly string[] =>
    [{ ...GOOD, ...change }[name] ?? []].flat();
const judge = (change: Record<string, string | string[] | undefined> = {}) =>
  judgeAuthorizeRequest(valuesOf(change), CLIENT, OFFER);

describe('an authorization request', () => {
  it('is accepted if valid, with scopes in a fixed order', () => {
    const request = {
      redirectUri: 'https://app.example.com/cb',
      codeChallenge: CHALLENGE,
      scopes: ['tunnels:read', 'requests:read'],
      state: 'a b~!',
    };
    expect(judge()).toEqual({ kind: 'asked', request });
    expect(judge({ resource: [RESOURCE, RESOURCE], other: ['1', '2'] })).toEqual({ kind: 'asked', request });
  });

  it.each([undefined, '', ' '])('without a scope (%j) requests the least scope', (scope) => {
    expect(judge({ scope, state: undefined })).toMatchObject({ request: { scopes: ['tunnels:read'], state: null } });
  });

  it.each([
    [{ redirect_uri: undefined }, 'the request has no redirect_uri'],
    [{ redirect_uri: ['https://app.example.com/cb', 'https://app.example.com/cb'] }, 'the request has no redirect_uri'],
    [{ redirect_uri: 'javascript:alert(1)' }, 'the redirect_uri is neither https nor http on localhost'],
    [{ redirect_uri: 'https://evil.example/cb' }, 'the redirect_uri is not registered for the client'],
    // The redirect URI is checked before any other parameter.
    [
      { redirect_uri: 'https://evil.example/cb', response_type: 'x' },
      'the redirect_uri is not registered for the client',
    ],
  ])('with an untrusted redirect URI gets an error page without a redirect: %j', (change, reason) => {
    expect(judge(change)).toEqual({ kind: 'untrusted', reason });
  });

  it.each([
    [{ response_type: undefined }, 'invalid_request', 'response_type is missing'],
    [{ response_type: 'token' }, 'unsupported_response_type', 'response_type must be code'],
    [{ response_type: ['code', 'code'] }, 'invalid_request', 'response_type is given twice'],
    [{ code_challenge_method: undefined }, 'invalid_request', 'code_challenge_method must be S256'],
    [{ code_challenge_method: 'plain' }, 'invalid_request', 'code_challenge_method must be S256'],
    [{ code_challenge: undefined }, 'invalid_request', 'code_challenge must have 43 characters (S256)'],
    [{ code_challenge: `${CHALLENGE}=` }, 'invalid_request', 'code_challenge must have 43 characters (S256)'],
    [{ resource: undefined }, 'invalid_target', `resource must be ${RESOURCE}`],
    [{ resource: `${RESOURCE}/` }, 'invalid_target', `resource must be ${RESOURCE}`],
    [{ resource: [RESOURCE, 'https://other.example'] }, 'invalid_target', `resource must be ${RESOURCE}`],
    [
      { scope: 'tunnels:read admin' },
      'invalid_scope',
      'scope can only include tunnels:read, requests:read, tunnels:close',
    ],
    [{ scope: 'TUNNELS:READ' }, 'invalid_scope', 'scope can only include tunnels:read, requests:read, tunnels:close'],
  ])('with a valid client and redirect URI reports the error to the client: %j', (change, error, description) => {
    const redirectUri = 'https://app.example.com/cb';
    expect(judge(change)).toEqual({ kind: 'refused', redirectUri, state: 'a b~!', error, description });
  });

  it.each(['\u0000', 'ä', 'x'.repeat(2001)])('with an invalid state is refused, and the state is returned', (state) => {
    expect(judge({ state })).toMatchObject({ kind: 'refused', error: 'invalid_request', state });
  });
});

it('an authorization request has a client ID only if given exactly once', () => {
  expect(clientIdOf(valuesOf({}))).toBe('https://app.example.com/client.json');
  for (const client_id of [undefined, '', ['a', 'b']]) expect(clientIdOf(valuesOf({ client_id }))).toBeNull();
});

it.each([
  ['tunnels:close tunnels:read', ['tunnels:read', 'tunnels:close']],
  ['  tunnels:read   tunnels:read ', ['tunnels:read']],
  ['', null],
  ['tunnels:read,requests:read', null],
  ['toString', null],
])('the scopes of %j are parsed and ordered, or null if invalid', (text, scopes) => {
  expect(parseScopes(text, SCOPES)).toEqual(scopes);
});
