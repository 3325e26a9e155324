// What is said to a provider during a login: where its people sign in, a code for an ID token, and who the token speaks of.
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
  /** Of the callback, as it was checked. */
  readonly code: string;
  /** RFC 9207; null: it names none. */
  readonly issuer: string | null;
}

type IdClaims = Readonly<Record<string, unknown>>;

export class CodeFlow {
  readonly #options: CodeFlowOptions;

  constructor(options: CodeFlowOptions) {
    this.#options = options;
  }

  /** Where the browser goes. Rejects with a `Fault`, as the other one does. */
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

  /** What the ID token says of the person, once it is proven; with what the user info adds where rules need `names` of it. */
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
      // The clock of the edge counts, which a test may hold.
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

  /** Some providers sign it (OpenID Connect Core, 5.3.2): whose it is, and for whom, it need not say; when it does it must be right. */
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

  /** Its signature, too: on the way it may have been in plain text, where private addresses are allowed. */
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
        // A GET comes with null.
        const sent = body ? Buffer.from(body.toString(), 'utf8') : undefined;
        const answer = await calls.send(ref, { url, headers, body: sent });
        // A redirect is no answer to any of these, and nobody follows it; nor is one without a body.
        if (answer.status < 200 || answer.status === 204 || (answer.status >= 300 && answer.status < 400))
          throw new ProviderAway('status', `it answered ${answer.status}`);
        const fields = answer.contentType === '' ? {} : { 'content-type': answer.contentType };
        return new Response(new Uint8Array(answer.body), { status: answer.status, headers: fields });
      },
      // Marked so that nobody uses it by chance: http is for where private addresses are allowed, and for the operator's own.
      // oxlint-disable-next-line typescript/no-deprecated
      [oauth.allowInsecureRequests]: calls.mayBePlain(ref.trust),
    };
  }
}

const isSigned = ({ status, headers }: Response): boolean =>
  status === 200 && /^application\/jwt\b/i.test(headers.get('content-type') ?? '');

/** As the provider says that it takes them; basic unless it says otherwise (OpenID Connect Discovery, 3). */
const clientAuthOf = (
  { clientSecret }: Provider,
  { token_endpoint_auth_methods_supported: methods = ['client_secret_basic'] }: oauth.AuthorizationServer,
): oauth.ClientAuth => {
  if (clientSecret === null) return oauth.None();
  const isBasic = methods.includes('client_secret_basic') || !methods.includes('client_secret_post');
  return (isBasic ? oauth.ClientSecretBasic : oauth.ClientSecretPost)(clientSecret.reveal());
};

/** Many providers keep all but the subject for the user info (OpenID Connect Core, 5.4). */
const needsMore = (claims: IdClaims, names: readonly string[]): boolean =>
  claims['email'] === undefined || names.some((name) => claims[name] === undefined);

/** The ID token counts first. An e-mail and whether it is verified come from one of the two, never one from each. */
const joined = (token: IdClaims, info: IdClaims): IdClaims => {
  const { email, email_verified } = token['email'] === undefined ? info : token;
  return { ...info, ...token, email, email_verified };
};

const away = (internal: string): Fault => new Fault('POLICY_PROVIDER_AWAY', {}, { internal });

/** A code that the provider does not take is one that was used, or too old; all else is the provider's failure. */
const faultOf = (error: unknown): Fault => {
  if (error instanceof Fault) return error;
  const isCodeOver = error instanceof oauth.ResponseBodyError && error.error === 'invalid_grant';
  // The kind of failure, never what came: it may hold tokens.
  const internal =
    error instanceof Error ? `${error.name}: ${String((error as NodeJS.ErrnoException).code ?? error.message)}` : '';
  return new Fault(isCodeOver ? 'POLICY_LOGIN_STATE' : 'POLICY_PROVIDER_AWAY', {}, { internal });
};
