// May this account open one more tunnel? Yes means that it is counted and in the log from now on.
import type { TunnelAnswer, TunnelQuestion } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { sql, type Transaction } from 'kysely';
import { isUuid, type Schema } from '../../db/schema.ts';
import { readEntitlement, refusalOf } from '../account-entitlement.ts';
import { refusal } from '../link-answers.ts';
import type { EdgeActor, ServiceContext } from '../service-context.ts';
import { dayOf, timeOf } from './entry-changes.ts';

export const openTunnel = async (
  { db, clock }: Pick<ServiceContext, 'db' | 'clock'>,
  { edgeId }: EdgeActor,
  question: TunnelQuestion,
  /** Aborted when the edge no longer waits for the answer: it goes on as if there were none, so nothing may be counted. */
  signal?: AbortSignal,
): Promise<TunnelAnswer> => {
  if (!isUuid(question.account_id) || !isUuid(question.key_id)) return refusal('AUTH_TOKEN_INVALID');
  return db.transaction().execute(async (trx) => {
    // Opens of one account wait for each other here, on whichever edge: the count below stays true until the entry is in.
    const account = await lockAccount(trx, question.account_id);
    refuseUnheard(signal);
    const key = await keyOf(trx, question);
    const entitled = await readEntitlement(trx, question.account_id, clock.now());
    if (account === undefined || key === undefined || entitled === undefined) return refusal('AUTH_TOKEN_INVALID');
    if (key.status !== 'active') return refusal('AUTH_TOKEN_REVOKED');
    await refuseOldRun(trx, edgeId, question.run_id);
    // Against one that comes back too: what lives is closed for the same reason.
    if (entitled.closed !== null) return refusalOf(entitled.closed);
    if (await isResumed(trx, edgeId, question)) return { ok: true };
    if (question.custom_subdomain && !entitled.allowCustomSubdomains) {
      return refusal('TUNNEL_CUSTOM_SUBDOMAIN', { plan: account.plan });
    }
    const limit = key.unlimited ? null : entitled.tunnelLimit;
    if (limit !== null && (await openEntries(trx, question.account_id)) >= limit) {
      return refusal('TUNNEL_PLAN_LIMIT', { limit });
    }
    await insertEntry(trx, edgeId, question);
    refuseUnheard(signal);
    return { ok: true };
  });
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
  if (signal?.aborted === true) throw new Fault('API_BAD_REQUEST', { reason: 'nobody waits for the answer any more' });
};

/** A question that was long under way: nobody of that run is there to close what it opens. */
const refuseOldRun = async (trx: Trx, edgeId: string, runId: string): Promise<void> => {
  const edge = await trx.selectFrom('edges').select('run_id').where('id', '=', edgeId).executeTakeFirst();
  if (edge?.run_id == null || edge.run_id === runId) return;
  throw new Fault('API_BAD_REQUEST', { reason: 'run_id: another run of this edge has begun; send a heartbeat first' });
};

/** The same tunnel again: a session that was resumed, or an answer that was lost. It was counted when it came first. */
const isResumed = async (trx: Trx, edgeId: string, question: TunnelQuestion): Promise<boolean> => {
  const entry = await trx
    .selectFrom('tunnel_log')
    .select(['id', 'edge_id', 'user_id'])
    .where('tunnel_id', '=', question.tunnel_id)
    .forNoKeyUpdate()
    .executeTakeFirst();
  if (entry === undefined) return false;
  if (entry.edge_id !== edgeId || entry.user_id !== question.account_id) {
    throw new Fault('API_BAD_REQUEST', { reason: 'tunnel_id: it is of another edge or account' });
  }
  await trx
    .updateTable('tunnel_log')
    .set({
      unregistered_at: null,
      presumed_closed: false,
      run_id: question.run_id,
      session_id: question.session_id,
      client_name: question.client_name ?? null,
    })
    .where('id', '=', entry.id)
    .execute();
  return true;
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

/** The key before the day, as where records are stored: nobody waits in a circle. */
const insertEntry = async (trx: Trx, edgeId: string, question: TunnelQuestion): Promise<void> => {
  const at = timeOf(question.at);
  const { numAffectedRows } = await sql`
    insert into tunnel_log
      (user_id, key_id, edge_id, run_id, region_id, tunnel_id, session_id, name, client_name, protocol, registered_at)
    values (
      ${question.account_id}, ${question.key_id}, ${edgeId}, ${question.run_id},
      (select region_id from edges where id = ${edgeId}),
      ${question.tunnel_id}, ${question.session_id}, ${question.name},
      ${question.client_name ?? null}, ${question.protocol}, ${at}
    ) on conflict (tunnel_id) do nothing`.execute(trx);
  // The edge did not wait for the answer, and its record of the tunnel was stored a moment ago, and counted.
  if (numAffectedRows === 0n) return;
  await sql`update api_keys set tunnel_count = tunnel_count + 1 where id = ${question.key_id}`.execute(trx);
  await sql`
    insert into usage_daily (user_id, day, tunnels) values (${question.account_id}, ${dayOf(at)}, 1)
    on conflict (user_id, day) do update set tunnels = usage_daily.tunnels + 1
  `.execute(trx);
};
