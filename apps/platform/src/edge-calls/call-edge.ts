// Finds the edges to call, and sends one HTTP request to an edge, with a time limit and a size limit.
import { ACCOUNT_HEADER, apiError } from '@tunnel/contract';
import { Fault, isErrorCode } from '@tunnel/errors';
import { readBounded } from '@tunnel/http-shell';
import type { Clock, Logger } from '@tunnel/runtime';
import { sql } from 'kysely';
import type * as z from 'zod';
import type { Db } from '../db/database.ts';
import { isEncrypted, type MasterKey } from '../db/master-key.ts';

/** Maximum size of an edge's response. */
const EDGE_ANSWER_MAX_BYTES = 32 * 1024 * 1024;

/** The edge of the same stack, called on a separate loopback listener. */
export interface LocalEdge {
  /** Name in the edge's database row. Other stacks on the same database have edges with other names. */
  readonly name: string;
  /** Returns the URL of the edge's listener, or null if the edge is not running. */
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
  /** Account in the name of which the edge is called. */
  readonly accountId: string;
  readonly timeoutMs: number;
  /** Body of the request to the edge, sent as JSON. */
  readonly body?: object;
  /** The caller's abort signal. Aborting ends the request at once with the signal's reason. */
  readonly signal?: AbortSignal;
}

/**
 * Sends one request to an edge, with a time limit and a size limit, and validates the response with the schema. Throws EDGE_AWAY without
 * a valid response in time, and other faults as the edge reports them for the caller.
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
    // The race enforces the time limit, because an injected fetch may ignore the abort signal.
    const answer = await Promise.race([send(deps, edge, question, abort.signal), tooLate]);
    return resultOf(answer, schema, away);
  } catch (error) {
    // After an abort by the caller, the edge is not at fault and no error is logged.
    if (question.signal?.aborted === true) throw question.signal.reason;
    throw error instanceof Fault ? error : away((error as Error).message, error);
  } finally {
    question.signal?.removeEventListener('abort', leave);
    timer.cancel();
    abort.abort();
  }
};

/** Status without a body. The schema validates null instead. */
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
    // Redirects are refused, so that the secret goes only to the edge's registered address.
    redirect: 'error',
    signal,
  });
  const response = await (deps.fetch ?? fetch)(request);
  const text = await readBounded(response, EDGE_ANSWER_MAX_BYTES);
  return { status: response.status, body: response.status === NO_CONTENT ? null : (JSON.parse(text) as unknown) };
};

/**
 * Decrypts the edge's API secret. Throws a plain error instead of a fault, because a fault would tell the caller the path of the key
 * file. An unencrypted secret was stored by an older platform version that is still running.
 */
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
  // 401 concerns only platform and edge, 500 and 503 are failures of the edge: none is reported to the caller.
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
  /** URL of the edge's API. Empty if the edge cannot be reached over the network. */
  readonly apiUrl: string;
  /** The edge's API secret as stored, usually encrypted. */
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

/** Returns the edges to ask for groups: edges heard from since the given time, and edges with an open tunnel entry of the account. */
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

/** Returns the edges with a live tunnel of the account. */
export const edgesWithTunnels = async (db: Db, accountId: string): Promise<ReachableEdge[]> => {
  const { rows } = await sql<EdgeRow>`
    select ${COLUMNS} from edges
    where revoked_at is null and region_id is not null
      and id in (select edge_id from tunnel_log where user_id = ${accountId} and unregistered_at is null)
    order by region_id, id
  `.execute(db);
  return rows.map(edgeOf);
};

/**
 * Returns the edge of a tunnel, open or closed. For a tunnel entry without an edge, returns the edge of the region with the latest
 * heartbeat.
 */
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
