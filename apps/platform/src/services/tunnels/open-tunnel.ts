// Decides whether an account may open another tunnel. An admitted tunnel is counted and entered in the log.
import type { LinkRefusal, TunnelAnswer, TunnelQuestion } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { sql, type Transaction } from 'kysely';
import { isUuid, type Schema } from '../../db/schema.ts';
import { endpointOfDomain } from '../domains/domain-rows.ts';
import { refusalOfDomain } from '../domains/edge-domains.ts';
import { claimName, type NameClaim } from '../names/claim-name.ts';
import { decidingKey, textOfKey } from '../names/name-key.ts';
import { type NamesContext, noteLastUse } from '../names/name-rows.ts';
import { readEntitlement, refusalOf } from '../plans/account-entitlement.ts';
import { type AnnouncedChange, announceChanges } from '../shared/edge-changes.ts';
import { refusal } from '../shared/link-answers.ts';
import type { EdgeActor } from '../shared/service-context.ts';
import { cappedDate, dayOf } from './entry-changes.ts';

export const openTunnel = async (
  context: NamesContext,
  actor: EdgeActor,
  question: TunnelQuestion,
  /** Aborted when the edge stops waiting for the response. The edge then continues without an answer, so the tunnel must not be counted. */
  signal?: AbortSignal,
): Promise<TunnelAnswer> => {
  if (!isUuid(question.account_id) || !isUuid(question.key_id)) return refusal('AUTH_TOKEN_INVALID');
  try {
    return await context.db.transaction().execute((trx) => admit(trx, context, actor, question, signal));
  } catch (error) {
    if (error instanceof NameRefused) return error.answer;
    throw error;
  }
};

const admit = async (
  trx: Trx,
  { clock, names }: NamesContext,
  { edgeId }: EdgeActor,
  question: TunnelQuestion,
  signal: AbortSignal | undefined,
): Promise<TunnelAnswer> => {
  // Locks the account, so that concurrent requests of an account run one after the other, on every edge. The count below stays correct
  // until the entry is inserted.
  const account = await lockAccount(trx, question.account_id);
  refuseUnheard(signal);
  const key = await keyOf(trx, question);
  const entitled = await readEntitlement(trx, question.account_id, clock.now());
  if (account === undefined || key === undefined || entitled === undefined) return refusal('AUTH_TOKEN_INVALID');
  if (key.status !== 'active') return refusal('AUTH_TOKEN_REVOKED');
  const regionId = await refuseOldRun(trx, edgeId, question.run_id);
  // The check applies to resumed tunnels too, because open tunnels of the account are closed for the same reason.
  if (entitled.closed !== null) return refusalOf(entitled.closed);
  const claim = { regionId, now: clock.now(), settings: names };
  if (await isResumed(trx, edgeId, question, claim)) return { ok: true };
  if (question.custom_subdomain && !entitled.allowCustomSubdomains) {
    return refusal('TUNNEL_CUSTOM_SUBDOMAIN', { plan: account.plan });
  }
  const limit = key.unlimited ? null : entitled.tunnelLimit;
  if (limit !== null && (await openEntries(trx, question.account_id)) >= limit) {
    return refusal('TUNNEL_PLAN_LIMIT', { limit });
  }
  await insertEntry(trx, edgeId, question, claim);
  refuseUnheard(signal);
  return { ok: true };
};

type Trx = Transaction<Schema>;

const lockAccount = (trx: Trx, accountId: string) =>
  trx.selectFrom('users').select('plan').where('id', '=', accountId).forNoKeyUpdate().executeTakeFirst();

const keyOf = (trx: Trx, { key_id, account_id }: TunnelQuestion) =>
  trx
    .selectFrom('api_keys')
    .select(['status', 'unlimited'])
    .where('id', '=', key_id)
    .where('user_id', '=', account_id)
    .executeTakeFirst();

const refuseUnheard = (signal: AbortSignal | undefined): void => {
  if (signal?.aborted === true)
    throw new Fault('API_BAD_REQUEST', { reason: 'the caller no longer waits for the response' });
};

/**
 * Returns the region of the edge. Throws if the request is of an earlier run of the edge: that run has ended, and could not close the
 * tunnel.
 */
const refuseOldRun = async (trx: Trx, edgeId: string, runId: string): Promise<string | null> => {
  const edge = await trx
    .selectFrom('edges')
    .select(['run_id', 'region_id'])
    .where('id', '=', edgeId)
    .executeTakeFirst();
  if (edge?.run_id == null || edge.run_id === runId) return edge?.region_id ?? null;
  throw new Fault('API_BAD_REQUEST', { reason: 'run_id: the edge has restarted; send a heartbeat first' });
};

/**
 * Handles a tunnel that is already in the log, because its session was resumed or a response was lost. The tunnel was counted at its
 * first request. Returns false if the tunnel is new.
 */
const isResumed = async (trx: Trx, edgeId: string, question: TunnelQuestion, claim: EdgeClaim): Promise<boolean> => {
  const entry = await trx
    .selectFrom('tunnel_log')
    .select(['id', 'edge_id', 'user_id', 'name_id', 'endpoint'])
    .where('tunnel_id', '=', question.tunnel_id)
    .forNoKeyUpdate()
    .executeTakeFirst();
  if (entry === undefined) return false;
  if (entry.edge_id !== edgeId || entry.user_id !== question.account_id) {
    throw new Fault('API_BAD_REQUEST', { reason: 'tunnel_id: belongs to another edge or account' });
  }
  await refuseDomain(trx, question, entry.endpoint);
  await trx
    .updateTable('tunnel_log')
    .set({
      unregistered_at: null,
      presumed_closed: false,
      run_id: question.run_id,
      session_id: question.session_id,
      client_name: question.client_name ?? null,
      ...(question.endpoint === undefined && question.domain === undefined
        ? {}
        : { endpoint: endpointOf(question, claim) }),
    })
    .where('id', '=', entry.id)
    .execute();
  // A resumed tunnel may request a different name than before.
  await announceChanges(trx, await serveName(trx, question, claim, entry.name_id));
  return true;
};

type EdgeClaim = Pick<NameClaim, 'regionId' | 'now' | 'settings'>;

/** Expected endpoint of the tunnel, so that no other account can reserve the name before the edge has reported the tunnel. */
const endpointOf = ({ endpoint, domain }: TunnelQuestion, { regionId }: EdgeClaim): string | null => {
  if (domain !== undefined) return endpointOfDomain(domain);
  return endpoint?.label == null ? null : textOfKey(decidingKey(endpoint.kind, endpoint.label, regionId));
};

/** Thrown to reject a tunnel because of its name. Rolls the transaction back. */
class NameRefused extends Error {
  readonly answer: LinkRefusal;

  constructor(answer: LinkRefusal) {
    super(answer.message);
    this.answer = answer;
  }
}

/** Throws if the account may not use the custom domain. `before` is the previous endpoint of the same tunnel, or null for a new tunnel. */
const refuseDomain = async (
  trx: Trx,
  { domain, account_id: accountId }: TunnelQuestion,
  before: string | null,
): Promise<void> => {
  if (domain === undefined) return;
  const refused = await refusalOfDomain(trx, { domain, accountId, isResumed: before === endpointOfDomain(domain) });
  if (refused !== null) throw new NameRefused(refused);
};

/**
 * Claims the name for a tunnel. Lock order, as for stored records: entry, name, key, day. Returns the changes to announce at the end of
 * the transaction.
 */
const serveName = async (
  trx: Trx,
  question: TunnelQuestion,
  claim: EdgeClaim,
  before: string | null,
): Promise<readonly AnnouncedChange[]> => {
  const { endpoint, domain, account_id: accountId } = question;
  if (endpoint === undefined || domain !== undefined) return [];
  const { refused, nameId, changes } = await claimName(trx, { ...claim, accountId, endpoint });
  if (refused !== null) throw new NameRefused(refused);
  if (nameId === before) return changes;
  await trx.updateTable('tunnel_log').set({ name_id: nameId }).where('tunnel_id', '=', question.tunnel_id).execute();
  if (before !== null) await noteLastUse(trx, [{ nameId: before, at: new Date(claim.now) }]);
  return changes;
};

const openEntries = async (trx: Trx, accountId: string): Promise<number> => {
  const { open } = await trx
    .selectFrom('tunnel_log')
    .select((rows) => rows.fn.countAll<number>().as('open'))
    .where('user_id', '=', accountId)
    .where('unregistered_at', 'is', null)
    .executeTakeFirstOrThrow();
  return open;
};

/** Inserts the log entry and counts the tunnel. The key is locked before the day, as for stored records, to avoid deadlocks. */
const insertEntry = async (trx: Trx, edgeId: string, question: TunnelQuestion, claim: EdgeClaim): Promise<void> => {
  const at = cappedDate(question.at);
  const { numAffectedRows } = await sql`
    insert into tunnel_log
      (user_id, key_id, edge_id, run_id, region_id, tunnel_id, session_id, name, client_name, protocol, registered_at, endpoint)
    values (
      ${question.account_id}, ${question.key_id}, ${edgeId}, ${question.run_id},
      (select region_id from edges where id = ${edgeId}),
      ${question.tunnel_id}, ${question.session_id}, ${question.name},
      ${question.client_name ?? null}, ${question.protocol}, ${at}, ${endpointOf(question, claim)}
    ) on conflict (tunnel_id) do nothing`.execute(trx);
  // The edge did not wait for the response, and its record of the tunnel was stored and counted a moment ago.
  if (numAffectedRows === 0n) return;
  await refuseDomain(trx, question, null);
  const changes = await serveName(trx, question, claim, null);
  await sql`
    update api_keys set tunnel_count = tunnel_count + 1, last_used_at = greatest(last_used_at, ${new Date(claim.now)})
    where id = ${question.key_id}
  `.execute(trx);
  await sql`
    insert into usage_daily (user_id, day, tunnels) values (${question.account_id}, ${dayOf(at)}, 1)
    on conflict (user_id, day) do update set tunnels = usage_daily.tunnels + 1
  `.execute(trx);
  await announceChanges(trx, changes);
};
