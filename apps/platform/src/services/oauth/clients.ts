// OAuth clients: apps with a client document, and clients without a document, which an operator registers.

import { Fault } from '@tunnel/errors';
import { problemOfRedirectUri } from '@tunnel/rules/sign-in';
import { randomId } from '@tunnel/runtime';
import type { Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import { actorName, writeAudit } from '../shared/audit.ts';
import type { OperatorActor, OperatorContext } from '../shared/service-context.ts';
import { type ClientVerdict, isDocumentUrl, plainName } from './client-document.rules.ts';
import type { ClientDocuments } from './client-documents.ts';
import { endGrant } from './grants.ts';

export interface ClientSources {
  readonly db: Db;
  readonly documents: Pick<ClientDocuments, 'find'>;
}

/** Finds a client. `network` is the network of the caller. Throws OAUTH_CLIENTS_BUSY. */
export const findClient = (
  { db, documents }: ClientSources,
  clientId: string,
  network: string,
): Promise<ClientVerdict> => (isDocumentUrl(clientId) ? documents.find(clientId, network) : registered(db, clientId));

const CLIENT_PREFIX = 'client';
const CLIENT_ID = new RegExp(`^${CLIENT_PREFIX}_[0-9A-Za-z]{20}$`);

const NOT_REGISTERED: ClientVerdict = {
  kind: 'refused',
  reason: 'the client id is neither an https URL nor a registered client',
};

const registered = async (db: Db, id: string): Promise<ClientVerdict> => {
  if (!CLIENT_ID.test(id)) return NOT_REGISTERED;
  const row = await db
    .selectFrom('oauth_clients')
    .select(['name', 'redirect_uris'])
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  if (row === undefined) return NOT_REGISTERED;
  // The operator has chosen the name, so the name can take the place of a host.
  return { kind: 'client', client: { id, host: row.name, name: row.name, redirectUris: row.redirect_uris.split(' ') } };
};

/**
 * Returns false if an operator has revoked the client since its request. Locks the client's row, so that the state cannot change before
 * the transaction ends.
 */
export const isClientInOrder = async (trx: Transaction<Schema>, clientId: string): Promise<boolean> => {
  if (isDocumentUrl(clientId)) return true;
  const row = await trx
    .selectFrom('oauth_clients')
    .select('id')
    .where('id', '=', clientId)
    .where('revoked_at', 'is', null)
    .forShare()
    .executeTakeFirst();
  return row !== undefined;
};

// Functions for operators at the console, for registered clients.

export interface RegisteredClient {
  readonly id: string;
  readonly name: string;
  readonly redirectUris: readonly string[];
  readonly createdAt: Date;
  readonly revokedAt: Date | null;
}

/** Registers a client. Throws OAUTH_CLIENT_INVALID. */
export const createOauthClient = async (
  { db, clock }: OperatorContext,
  actor: OperatorActor,
  { name: typed, redirectUris }: Pick<RegisteredClient, 'name' | 'redirectUris'>,
): Promise<RegisteredClient> => {
  const name = plainName(typed);
  if (name === '') throw new Fault('OAUTH_CLIENT_INVALID', { reason: 'the client has no name' });
  if (redirectUris.length === 0) throw new Fault('OAUTH_CLIENT_INVALID', { reason: 'the client has no redirect URI' });
  for (const uri of redirectUris) {
    const problem = problemOfRedirectUri(uri);
    if (problem !== null) throw new Fault('OAUTH_CLIENT_INVALID', { reason: `the redirect URI ${uri} ${problem}` });
  }
  const id = randomId(CLIENT_PREFIX);
  const createdAt = new Date(clock.now());
  await db.transaction().execute(async (trx) => {
    await trx
      .insertInto('oauth_clients')
      .values({ id, name, redirect_uris: redirectUris.join(' '), created_at: createdAt })
      .execute();
    await writeAudit(trx, {
      actor: actorName(actor),
      action: 'oauth-client.created',
      details: { client_id: id, name },
    });
  });
  return { id, name, redirectUris, createdAt, revokedAt: null };
};

/** Lists all registered clients, including revoked clients, newest first. */
export const listOauthClients = async ({ db }: Pick<OperatorContext, 'db'>): Promise<RegisteredClient[]> => {
  const rows = await db.selectFrom('oauth_clients').selectAll().orderBy('created_at', 'desc').orderBy('id').execute();
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    redirectUris: row.redirect_uris.split(' '),
    createdAt: row.created_at,
    revokedAt: row.revoked_at,
  }));
};

/** Revokes a registered client. Its grants end, and further requests are rejected. Throws OAUTH_CLIENT_UNKNOWN. */
export const revokeOauthClient = async (
  { db, clock }: OperatorContext,
  actor: OperatorActor,
  id: string,
): Promise<{ readonly id: string; readonly name: string; readonly grantsEnded: number }> =>
  db.transaction().execute(async (trx) => {
    const now = clock.now();
    const row = await trx
      .updateTable('oauth_clients')
      .set({ revoked_at: new Date(now) })
      .where('id', '=', id)
      .where('revoked_at', 'is', null)
      .returning('name')
      .executeTakeFirst();
    if (row === undefined) throw new Fault('OAUTH_CLIENT_UNKNOWN', { client: id });
    await trx.deleteFrom('oauth_requests').where('client_id', '=', id).execute();
    const by = actorName(actor);
    const grants = await trx
      .selectFrom('oauth_grants')
      .select('id')
      .where('client_id', '=', id)
      .where('revoked_at', 'is', null)
      .orderBy('id')
      .execute();
    for (const { id: grantId } of grants) await endGrant(trx, { grantId, actor: by, now });
    await writeAudit(trx, { actor: by, action: 'oauth-client.revoked', details: { client_id: id, name: row.name } });
    return { id, name: row.name, grantsEnded: grants.length };
  });
