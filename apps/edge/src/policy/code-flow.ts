// The OpenID Connect requests of a login: the URL of the sign-in page, the exchange of a code for an ID token, and the claims of the
// signed-in visitor.
import { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import { decodeJwt } from 'jose';
import * as oauth from 'oauth4webapi';
import { JWT_SKEW_SECS, type JwtVerifier, SIGNATURE_ALGORITHMS } from './jwt-verifier.ts';
import type { Provider } from './login-providers.ts';
import { ProviderAway, type ProviderCalls } from './provider-calls.ts';
import type { ProviderDocuments } from './provider-documents.ts';

export interface CodeFlowOptions {
  readonly calls: ProviderCalls;
  readonly documents: ProviderDocuments;
  readonly jwts: JwtVerifier;
  readonly clock: Pick<Clock, 'now'>;
}

export interface AuthorizeFields {
  readonly redirectUri: string;
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

export interface CodeFields extends AuthorizeFields {
  /** Authorization code from the callback. The callback's parameters were checked before. */
  readonly code: string;
  /** Issuer named by the callback (RFC 9207), or null. */
  readonly issuer: string | null;
}

type IdClaims = Readonly<Record<string, unknown>>;

export class CodeFlow {
  readonly #options: CodeFlowOptions;

  constructor(options: CodeFlowOptions) {
    this.#options = options;
  }

  /** Returns the URL of the provider's sign-in page. Rejects with a `Fault`, like claimsOf(). */
  async authorizeUrl(provider: Provider, fields: AuthorizeFields): Promise<string> {
    const { authorization_endpoint: endpoint = '' } = await this.#metadataOf(provider);
    const isPlain = this.#options.calls.mayBePlain(provider.ref.trust);
    if (!URL.canParse(endpoint) || !(isPlain ? /^https?:/i : /^https:/i).test(endpoint)) throw away('no endpoint');
    const url = new URL(endpoint);
    const parameters = {
      client_id: provider.clientId,
      redirect_uri: fields.redirectUri,
      response_type: 'code',
      scope: provider.scopes.join(' '),
      state: fields.state,
      nonce: fields.nonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(fields.verifier),
      code_challenge_method: 'S256',
    };
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return url.href;
  }

  /**
   * Returns the claims of the verified ID token. Adds claims from the provider's user info if rules need `names` that the ID token does
   * not have.
   */
  async claimsOf(provider: Provider, fields: CodeFields, names: readonly string[]): Promise<IdClaims> {
    const server = await this.#metadataOf(provider);
    try {
      return await this.#redeem(provider, server, fields, names);
    } catch (error) {
      throw faultOf(error);
    }
  }

  async #redeem(
    provider: Provider,
    server: oauth.AuthorizationServer,
    fields: CodeFields,
    names: readonly string[],
  ): Promise<IdClaims> {
    const client: oauth.Client = {
      client_id: provider.clientId,
      // Validate times with the edge's clock, which tests can control.
      [oauth.clockSkew]: Math.round((this.#options.clock.now() - Date.now()) / 1000),
      [oauth.clockTolerance]: JWT_SKEW_SECS,
    };
    const options = this.#requestOptions(provider);
    const { code, state, issuer, redirectUri, verifier, nonce } = fields;
    const callback = new URLSearchParams({ code, state, ...(issuer === null ? {} : { iss: issuer }) });
    const auth = clientAuthOf(provider, server);
    const good = oauth.validateAuthResponse(server, client, callback, state);
    const ask = oauth.authorizationCodeGrantRequest;
    const response = await ask(server, client, auth, good, redirectUri, verifier, options);
    const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, {
      expectedNonce: nonce,
      requireIdToken: true,
    });
    const claims = oauth.getValidatedIdTokenClaims(tokens);
    if (claims === undefined) throw away('ID token missing');
    await this.#proveIdToken(provider, server, tokens.id_token ?? '');
    if (claims.azp !== undefined && claims.azp !== provider.clientId) throw away('ID token for another client');
    if (!needsMore(claims, names) || server.userinfo_endpoint === undefined) return claims;
    const answer = await oauth.userInfoRequest(server, client, tokens.access_token, options);
    const info = isSigned(answer)
      ? await this.#provenUserInfo(provider, server, await answer.text())
      : await oauth.processUserInfoResponse(server, client, claims.sub, answer);
    if (info['sub'] !== claims.sub) throw away('user info of another user');
    return joined(claims, info);
  }

  /**
   * Verifies user info that the provider has signed (OpenID Connect Core, 5.3.2). Issuer and audience are optional there, but must be
   * correct if present.
   */
  async #provenUserInfo(provider: Provider, server: oauth.AuthorizationServer, token: string): Promise<IdClaims> {
    const { iss, aud } = decodeJwt(token);
    const proven = await this.#options.jwts.verify(token, {
      provider: provider.ref,
      keysUrl: server.jwks_uri ?? null,
      issuer: iss === undefined ? null : server.issuer,
      audience: aud === undefined ? null : [provider.clientId],
      algorithms: SIGNATURE_ALGORITHMS,
      mayBeEndless: true,
    });
    if (proven === null) throw away('invalid signed user info');
    return proven;
  }

  /**
   * Verifies the ID token including its signature: where private addresses are allowed, the token may have come over an unencrypted
   * connection.
   */
  async #proveIdToken(provider: Provider, server: oauth.AuthorizationServer, token: string): Promise<void> {
    const proven = await this.#options.jwts.verify(token, {
      provider: provider.ref,
      keysUrl: server.jwks_uri ?? null,
      issuer: server.issuer,
      audience: [provider.clientId],
      algorithms: (server.id_token_signing_alg_values_supported ?? ['RS256']).filter((name) =>
        SIGNATURE_ALGORITHMS.includes(name),
      ),
    });
    if (proven === null) throw away('invalid ID token');
  }

  async #metadataOf(provider: Provider): Promise<oauth.AuthorizationServer> {
    try {
      return await this.#options.documents.metadataOf(provider.ref);
    } catch (error) {
      throw faultOf(error);
    }
  }

  #requestOptions({ ref }: Provider): oauth.TokenEndpointRequestOptions & oauth.UserInfoRequestOptions {
    const { calls } = this.#options;
    return {
      [oauth.customFetch]: async (
        url: string,
        { headers, body }: { headers: Record<string, string>; body?: URLSearchParams | null | undefined },
      ) => {
        // The OAuth library passes null as the body of a GET.
        const sent = body ? Buffer.from(body.toString(), 'utf8') : undefined;
        const answer = await calls.send(ref, { url, headers, body: sent });
        // Redirects and responses without a body are not valid here, and redirects are not followed.
        if (answer.status < 200 || answer.status === 204 || (answer.status >= 300 && answer.status < 400))
          throw new ProviderAway('status', `it answered ${answer.status}`);
        const fields = answer.contentType === '' ? {} : { 'content-type': answer.contentType };
        return new Response(new Uint8Array(answer.body), { status: answer.status, headers: fields });
      },
      // oauth4webapi marks the option as deprecated to prevent accidental use. http is for private addresses and the operator's providers.
      // oxlint-disable-next-line typescript/no-deprecated
      [oauth.allowInsecureRequests]: calls.mayBePlain(ref.trust),
    };
  }
}

const isSigned = ({ status, headers }: Response): boolean =>
  status === 200 && /^application\/jwt\b/i.test(headers.get('content-type') ?? '');

/**
 * Chooses how the client authenticates to the provider: as listed in the provider's metadata, with Basic as the default (OpenID Connect
 * Discovery, 3).
 */
const clientAuthOf = (
  { clientSecret }: Provider,
  { token_endpoint_auth_methods_supported: methods = ['client_secret_basic'] }: oauth.AuthorizationServer,
): oauth.ClientAuth => {
  if (clientSecret === null) return oauth.None();
  const isBasic = methods.includes('client_secret_basic') || !methods.includes('client_secret_post');
  return (isBasic ? oauth.ClientSecretBasic : oauth.ClientSecretPost)(clientSecret.reveal());
};

/** Returns true if the user info must be requested. Many providers return only the subject in the ID token (OpenID Connect Core, 5.4). */
const needsMore = (claims: IdClaims, names: readonly string[]): boolean =>
  claims['email'] === undefined || names.some((name) => claims[name] === undefined);

/**
 * Merges the claims of the ID token and the user info; the ID token has priority. The email and `email_verified` always come from the
 * same source.
 */
const joined = (token: IdClaims, info: IdClaims): IdClaims => {
  const { email, email_verified } = token['email'] === undefined ? info : token;
  return { ...info, ...token, email, email_verified };
};

const away = (internal: string): Fault => new Fault('POLICY_PROVIDER_AWAY', {}, { internal });

/**
 * Converts an error of the code flow to a Fault. A code that the provider rejects was used already or has expired; every other error is a
 * failure of the provider.
 */
const faultOf = (error: unknown): Fault => {
  if (error instanceof Fault) return error;
  const isCodeOver = error instanceof oauth.ResponseBodyError && error.error === 'invalid_grant';
  // Log the kind of the failure, never the response, because the response may contain tokens.
  const internal =
    error instanceof Error ? `${error.name}: ${String((error as NodeJS.ErrnoException).code ?? error.message)}` : '';
  return new Fault(isCodeOver ? 'POLICY_LOGIN_STATE' : 'POLICY_PROVIDER_AWAY', {}, { internal });
};
