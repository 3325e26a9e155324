// Consent page: shows an authorization request to the user and applies the decision. If the user allows the request, a grant and a code
// are created, and the app redeems the code.
import {
  OAUTH_SCOPES,
  type OauthDecided,
  type OauthDecision,
  type OauthRequest,
  type OauthScope,
} from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { hostOfUri, withAnswer } from '@tunnel/rules/sign-in';
import { randomId, randomToken, sha256Hex } from '@tunnel/runtime';
import type { Selectable, Transaction } from 'kysely';
import type { OauthRequestsTable } from '../../db/oauth-tables.ts';
import type { Schema } from '../../db/schema.ts';
import { writeAudit } from '../shared/audit.ts';
import { type CreationContext, countCreation } from '../shared/creations.ts';
import type { LoggedInActor, ServiceContext } from '../shared/service-context.ts';
import { parseScopes } from './authorize-request.rules.ts';
import { isClientInOrder } from './clients.ts';
import { endGrant } from './grants.ts';
import type { OauthAddresses } from './oauth-addresses.ts';

/** Lifetime of an authorization code. Apps redeem a code at once, and a code found in a log later is worthless. */
export const OAUTH_CODE_MS = 60_000;
/**
 * Maximum number of apps connected to an account. A further app disconnects the least recently used app.
 * @limit accounts: Connected apps per account | the least recently used app is disconnected
 */
export const OAUTH_GRANTS_PER_ACCOUNT_MAX = 100;

type Context = Pick<ServiceContext, 'db' | 'clock'>;
type Asked = Selectable<OauthRequestsTable>;

const REQUEST_PREFIX = 'ask';
const REQUEST_ID = new RegExp(`^${REQUEST_PREFIX}_[0-9A-Za-z]{20}$`);

export const newRequestId = (): string => randomId(REQUEST_PREFIX);

/**
 * Returns true if the text can be the id of a request. Other texts never reach a query, because PostgreSQL would reject some of them with
 * an error.
 */
const isRequestId = (text: string): boolean => REQUEST_ID.test(text);

/**
 * Returns a pending authorization request. Until the decision, a request belongs to no account, so any user with the link can see it.
 * Throws OAUTH_REQUEST_UNKNOWN.
 */
export const showOauthRequest = async ({ db, clock }: Context, id: string): Promise<OauthRequest> => {
  if (!isRequestId(id)) throw new Fault('OAUTH_REQUEST_UNKNOWN');
  const row = await db
    .selectFrom('oauth_requests')
    .selectAll()
    .where('id', '=', id)
    .where('expires_at', '>', new Date(clock.now()))
    .executeTakeFirst();
  if (row === undefined) throw new Fault('OAUTH_REQUEST_UNKNOWN');
  return {
    id: row.id,
    client_id: row.client_id,
    client_host: row.client_host,
    client_name: row.client_name,
    redirect_host: hostOfUri(row.redirect_uri),
    scopes: scopesOf(row),
    expires_at: row.expires_at.toISOString(),
  };
};

/**
 * Applies the user's decision on a request. A request can be decided only once. Throws OAUTH_REQUEST_UNKNOWN, and API_BAD_REQUEST for
 * scopes that cannot be granted; the request then stays pending.
 */
export const decideOauthRequest = async (
  context: Context & CreationContext & { readonly addresses: OauthAddresses },
  { userId, epoch }: LoggedInActor,
  { id, decision }: { readonly id: string; readonly decision: OauthDecision },
): Promise<OauthDecided> => {
  const { db, clock, addresses } = context;
  if (!isRequestId(id)) throw new Fault('OAUTH_REQUEST_UNKNOWN');
  const now = clock.now();
  return db.transaction().execute(async (trx) => {
    // The account is locked first, as everywhere else, so that its grants are counted one after the other.
    const user = await trx
      .selectFrom('users')
      .select(['epoch', 'status', 'deleted_at'])
      .where('id', '=', userId)
      .forNoKeyUpdate()
      .executeTakeFirst();
    // A request that began before a suspension, a deletion or a new password must not create a grant afterwards, because the grant would
    // have the new epoch.
    const isSame = user?.deleted_at === null && user.status === 'active' && user.epoch === epoch;
    if (!isSame) throw new Fault('ACCESS_TOKEN_INVALID');
    const asked = await takeRequest(trx, id, now);
    const { redirect_uri: uri, state } = asked;
    if (!decision.allow)
      return { redirect_to: withAnswer(uri, { error: 'access_denied', state, iss: addresses.issuer }) };
    const scopes = allowedOf(asked, decision);
    await countCreation(trx, context, userId);
    const code = await giveGrant(trx, { userId, epoch, asked, scopes, now });
    return { redirect_to: withAnswer(uri, { code, state, iss: addresses.issuer }) };
  });
};

/** Deletes a pending request and returns its row. An error later in the transaction restores the request. */
const takeRequest = async (trx: Transaction<Schema>, id: string, now: number): Promise<Asked> => {
  const row = await trx.selectFrom('oauth_requests').select('client_id').where('id', '=', id).executeTakeFirst();
  // The client is locked before the request, in the same order as when an operator revokes a client.
  if (row === undefined || !(await isClientInOrder(trx, row.client_id))) throw new Fault('OAUTH_REQUEST_UNKNOWN');
  const asked = await trx
    .deleteFrom('oauth_requests')
    .where('id', '=', id)
    .where('expires_at', '>', new Date(now))
    .returningAll()
    .executeTakeFirst();
  if (asked === undefined) throw new Fault('OAUTH_REQUEST_UNKNOWN');
  return asked;
};

const scopesOf = ({ scope }: Pick<Asked, 'scope'>): OauthScope[] => [...(parseScopes(scope, OAUTH_SCOPES) ?? [])];

const allowedOf = (asked: Asked, { scopes: chosen }: OauthDecision): readonly OauthScope[] => {
  const possible = scopesOf(asked);
  if (chosen === undefined) return possible;
  const beyond = chosen.find((scope) => !possible.includes(scope));
  if (beyond !== undefined) throw new Fault('API_BAD_REQUEST', { reason: `scopes: ${beyond} was not requested` });
  if (chosen.length === 0) throw new Fault('API_BAD_REQUEST', { reason: 'scopes: must not be empty' });
  return possible.filter((scope) => chosen.includes(scope));
};

interface Allowed {
  readonly userId: string;
  readonly epoch: number;
  readonly asked: Asked;
  readonly scopes: readonly OauthScope[];
  readonly now: number;
}

/** Creates a grant and returns its code. Only the hash of the code is stored. */
const giveGrant = async (trx: Transaction<Schema>, { userId, epoch, asked, scopes, now }: Allowed): Promise<string> => {
  const at = new Date(now);
  const { id: grantId } = await trx
    .insertInto('oauth_grants')
    .values({
      user_id: userId,
      client_id: asked.client_id,
      client_host: asked.client_host,
      client_name: asked.client_name,
      scope: scopes.join(' '),
      resource: asked.resource,
      epoch,
      created_at: at,
    })
    .returning('id')
    .executeTakeFirstOrThrow();
  const code = randomToken(32);
  await trx
    .insertInto('oauth_codes')
    .values({
      code_hash: sha256Hex(code),
      grant_id: grantId,
      redirect_uri: asked.redirect_uri,
      code_challenge: asked.code_challenge,
      created_at: at,
      expires_at: new Date(now + OAUTH_CODE_MS),
    })
    .execute();
  await endOldest(trx, { userId, given: grantId, now });
  const details = { grant_id: grantId, client_id: asked.client_id, scopes };
  await writeAudit(trx, { actor: `user:${userId}`, action: 'oauth.granted', userId, details });
  return code;
};

/**
 * Ends the least recently used grants above the account's limit. The new grant is never ended, even if all other grants were used more
 * recently.
 */
const endOldest = async (
  trx: Transaction<Schema>,
  { userId, given, now }: { readonly userId: string; readonly given: string; readonly now: number },
): Promise<void> => {
  const over = await trx
    .selectFrom('oauth_grants')
    .select('id')
    .where('user_id', '=', userId)
    .where('id', '!=', given)
    .where('revoked_at', 'is', null)
    .orderBy(({ fn }) => fn.coalesce('last_used_at', 'created_at'), 'desc')
    .orderBy('id')
    .offset(OAUTH_GRANTS_PER_ACCOUNT_MAX - 1)
    .execute();
  for (const { id: grantId } of over) await endGrant(trx, { grantId, actor: 'system', now });
};
