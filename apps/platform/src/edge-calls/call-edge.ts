// Which edges there are to ask, and one question to one of them over HTTP, within a time and a size.
import { ACCOUNT_HEADER, apiError } from '@tunnel/contract';
import { Fault, isErrorCode } from '@tunnel/errors';
import { readBounded } from '@tunnel/http-shell';
import type { Clock, Logger } from '@tunnel/runtime';
import { sql } from 'kysely';
import type * as z from 'zod';
import type { Db } from '../db/database.ts';
import { isEncrypted, type MasterKey } from '../db/master-key.ts';

/** Of an edge's answer. */
const EDGE_ANSWER_MAX_BYTES = 32 * 1024 * 1024;

/** The edge of the same stack, which is asked at a loopback listener of its own. */
export interface LocalEdge {
  /** Of its row: other stacks on the same database have edges of their own. */
  readonly name: string;
  /** null: the edge is not running. */
  readonly url: () => string | null;
}

export interface CallDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly masterKey: () => MasterKey;
  readonly localEdge?: LocalEdge | null;
  readonly fetch?: typeof fetch;
}

export interface EdgeRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  /** On whose behalf. */
  readonly accountId: string;
  readonly timeoutMs: number;
  /** Sent as JSON. */
  readonly body?: object;
  /** Of whoever asked: gives the question up at once, with its reason. */
  readonly signal?: AbortSignal;
}

/**
 * One question to one edge, within a time and a size; the answer is checked by its schema.
 * EDGE_AWAY when there is no good answer in time; other faults are what the edge itself says to the caller.
 */
export const callEdge = async <T extends z.ZodType>(
  deps: CallDeps,
  edge: ReachableEdge,
  question: EdgeRequest,
  schema: T,
): Promise<z.output<T>> => {
  const abort = new AbortController();
  const away = awayOf(deps.logger, edge);
  let timeUp: (fault: Fault) => void = () => {};
  const tooLate = new Promise<never>((_, reject) => {
    timeUp = reject;
  });
  const timer = deps.clock.setTimeout(() => {
    timeUp(away(`no response within ${question.timeoutMs} ms`));
    abort.abort();
  }, question.timeoutMs);
  const leave = (): void => abort.abort();
  question.signal?.addEventListener('abort', leave, { once: true });
  try {
    question.signal?.throwIfAborted();
    // Whoever answers need not look at the signal.
    const answer = await Promise.race([send(deps, edge, question, abort.signal), tooLate]);
    return resultOf(answer, schema, away);
  } catch (error) {
    // Nobody hears it, and it was not the edge's doing.
    if (question.signal?.aborted === true) throw question.signal.reason;
    throw error instanceof Fault ? error : away((error as Error).message, error);
  } finally {
    question.signal?.removeEventListener('abort', leave);
    timer.cancel();
    abort.abort();
  }
};

/** Its body is null to the schema. */
const NO_CONTENT = 204;

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const send = async (
  deps: CallDeps,
  edge: ReachableEdge,
  { method, path, accountId, body }: EdgeRequest,
  signal: AbortSignal,
): Promise<Answer> => {
  const request = new Request(`${addressOf(edge, deps)}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${openApiSecret(deps, edge)}`,
      [ACCOUNT_HEADER]: accountId,
      accept: 'application/json',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    // The secret goes to the address that the edge gave, and nowhere else.
    redirect: 'error',
    signal,
  });
  const response = await (deps.fetch ?? fetch)(request);
  const text = await readBounded(response, EDGE_ANSWER_MAX_BYTES);
  return { status: response.status, body: response.status === NO_CONTENT ? null : (JSON.parse(text) as unknown) };
};

/** Not a fault of the caller's, which would be told the file of the key. In clear: told by a platform of before that still runs. */
const openApiSecret = ({ masterKey }: CallDeps, { id, apiSecret }: ReachableEdge): string => {
  if (!isEncrypted(apiSecret)) return apiSecret;
  try {
    return masterKey().decrypt({ kind: 'edge-api-secret', id }, apiSecret);
  } catch (error) {
    throw new Error('cannot decrypt the edge secret', { cause: error });
  }
};

const addressOf = ({ name, apiUrl }: ReachableEdge, { localEdge }: CallDeps): string => {
  const url = name === localEdge?.name ? localEdge.url() : apiUrl;
  if (url === null) throw new Error('the edge is not running');
  if (url === '') throw new Error('the edge has no api_url');
  return url.replace(/\/+$/, '');
};

const resultOf = <T extends z.ZodType>({ status, body }: Answer, schema: T, away: Away): z.output<T> => {
  if (status === 200 || status === NO_CONTENT) {
    const result = schema.safeParse(body);
    if (result.success) return result.data;
    throw away(`unexpected response: ${result.error.issues[0]?.path.join('.') ?? ''}`);
  }
  const refused = apiError.safeParse(body);
  // 401 is between platform and edge, and 500 is the edge's own trouble: neither is the caller's business.
  const isForCaller = status !== 401 && status !== 500 && status !== 503;
  if (refused.success && isForCaller && isErrorCode(refused.data.code)) {
    throw Fault.fromWire(refused.data.code, refused.data.error);
  }
  throw away(`it answered ${status}`);
};

type Away = (reason: string, cause?: unknown) => Fault;

const awayOf =
  (logger: Logger, edge: ReachableEdge): Away =>
  (reason, cause) => {
    logger.warn({ edge_id: edge.id, region: edge.regionId, reason }, 'an edge did not respond');
    return new Fault('EDGE_AWAY', { region: edge.regionId }, { internal: reason, cause });
  };

export interface ReachableEdge {
  readonly id: string;
  readonly name: string;
  readonly regionId: string;
  /** Empty: it is not reached over the network. */
  readonly apiUrl: string;
  /** As it is stored. */
  readonly apiSecret: string;
}

interface EdgeRow {
  readonly id: string;
  readonly name: string;
  readonly region_id: string | null;
  readonly api_url: string;
  readonly api_secret: string;
}

const COLUMNS = sql`edges.id, edges.name, edges.region_id, edges.api_url, edges.api_secret`;

/**
 * Which edges there are to ask, and how each is reached. Those that were heard since, and those that hold an open entry of
 * the account.
 */
export const edgesWithPools = async (db: Db, accountId: string, heardSince: Date): Promise<ReachableEdge[]> => {
  const { rows } = await sql<EdgeRow>`
    select ${COLUMNS} from edges
    where revoked_at is null and region_id is not null and (
      last_heartbeat_at >= ${heardSince}
      or id in (select edge_id from tunnel_log where user_id = ${accountId} and unregistered_at is null)
    )
    order by region_id, id
  `.execute(db);
  return rows.map(edgeOf);
};

/** Those that hold a living tunnel of the account. */
export const edgesWithTunnels = async (db: Db, accountId: string): Promise<ReachableEdge[]> => {
  const { rows } = await sql<EdgeRow>`
    select ${COLUMNS} from edges
    where revoked_at is null and region_id is not null
      and id in (select edge_id from tunnel_log where user_id = ${accountId} and unregistered_at is null)
    order by region_id, id
  `.execute(db);
  return rows.map(edgeOf);
};

/** The edge that the tunnel is or was at; for an entry without one, the edge of its region that was heard last. */
export const edgeOfTunnel = async (db: Db, regionId: string, tunnelId: string): Promise<ReachableEdge | undefined> => {
  const { rows } = await sql<EdgeRow>`
    select ${COLUMNS} from edges
    left join tunnel_log on tunnel_log.tunnel_id = ${tunnelId}
    where edges.revoked_at is null and edges.region_id is not null
      and (edges.id = tunnel_log.edge_id or (tunnel_log.edge_id is null and edges.region_id = ${regionId}))
    order by edges.last_heartbeat_at desc nulls last
    limit 1
  `.execute(db);
  return rows[0] === undefined ? undefined : edgeOf(rows[0]);
};

const edgeOf = (row: EdgeRow): ReachableEdge => ({
  id: row.id,
  name: row.name,
  regionId: row.region_id ?? '',
  apiUrl: row.api_url,
  apiSecret: row.api_secret,
});
