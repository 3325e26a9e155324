// Authorization endpoint: an app asks to be connected to an account. The request is fully validated here, once, and stored until the user
// decides.
import { OAUTH_SCOPES, type OauthScope } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { networkOf } from '@tunnel/rules/net';
import { withAnswer } from '@tunnel/rules/sign-in';
import { sql } from 'kysely';
import type { ServiceContext } from '../shared/service-context.ts';
import {
  type AuthorizeRequest,
  clientIdOf,
  judgeAuthorizeRequest,
  type QueryValues,
} from './authorize-request.rules.ts';
import { type OauthClient } from './client-document.rules.ts';
import type { ClientDocuments } from './client-documents.ts';
import { findClient } from './clients.ts';
import { newRequestId } from './decide-request.ts';
import type { OauthAddresses } from './oauth-addresses.ts';

/**
 * Time that a user has to decide on an authorization request.
 * @limit accounts: Consent page of an app, time to decide | 404 `OAUTH_REQUEST_UNKNOWN`
 */
export const OAUTH_REQUEST_MS = 10 * 60_000;
/** Maximum number of pending authorization requests from all networks. A further request deletes the oldest. */
export const OAUTH_REQUESTS_MAX = 10_000;

export interface AuthorizeContext extends Pick<ServiceContext, 'db' | 'clock'> {
  readonly addresses: OauthAddresses;
  readonly documents: Pick<ClientDocuments, 'find'>;
}

const DEFAULT_SCOPE: OauthScope = 'tunnels:read';

/**
 * Returns the redirect target of the browser: the consent page, or the client's redirect URI with an error. Throws OAUTH_CLIENT_REFUSED
 * if the browser must not be redirected, and OAUTH_CLIENTS_BUSY.
 */
export const authorize = async (context: AuthorizeContext, values: QueryValues, address: string): Promise<string> => {
  const { issuer, resource } = context.addresses;
  const clientId = clientIdOf(values);
  if (clientId === null) throw refused('the request has no client_id');
  const found = await findClient(context, clientId, networkOf(address));
  if (found.kind === 'refused') throw refused(found.reason);
  const offer = { resource, scopes: OAUTH_SCOPES, defaultScope: DEFAULT_SCOPE };
  const verdict = judgeAuthorizeRequest(values, found.client, offer);
  switch (verdict.kind) {
    case 'untrusted':
      throw refused(verdict.reason);
    case 'refused': {
      const { redirectUri, error, description, state } = verdict;
      return withAnswer(redirectUri, { error, error_description: description, state, iss: issuer });
    }
    case 'asked':
      return `/app/consent?request=${await keepRequest(context, found.client, verdict.request)}`;
  }
};

const refused = (reason: string): Fault => new Fault('OAUTH_CLIENT_REFUSED', { reason });

const keepRequest = async (
  { db, clock, addresses }: AuthorizeContext,
  client: OauthClient,
  request: AuthorizeRequest<OauthScope>,
): Promise<string> => {
  const id = newRequestId();
  const now = clock.now();
  await db
    .insertInto('oauth_requests')
    .values({
      id,
      client_id: client.id,
      client_host: client.host,
      client_name: client.name,
      redirect_uri: request.redirectUri,
      code_challenge: request.codeChallenge,
      resource: addresses.resource,
      scope: request.scopes.join(' '),
      state: request.state,
      created_at: new Date(now),
      expires_at: new Date(now + OAUTH_REQUEST_MS),
    })
    .execute();
  await endOldest({ db });
  return id;
};

/**
 * Deletes the oldest pending requests above the limit. A flood of requests can displace a user's request only if the flood lasts as long
 * as the user takes to decide.
 */
const endOldest = async ({ db }: Pick<AuthorizeContext, 'db'>): Promise<void> => {
  await sql`
    delete from oauth_requests where id in (
      select id from oauth_requests order by expires_at desc offset ${OAUTH_REQUESTS_MAX}
    )`.execute(db);
};
