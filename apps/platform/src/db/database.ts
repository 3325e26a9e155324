// The connection pool and the typed queries. Connections are opened on demand, so an unavailable database, at the start or later, only
// fails the affected query.
import { type Logger, type Secret, systemClock } from '@tunnel/runtime';
import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely';
import pg from 'pg';
import { TimeoutError, withTimeout } from '../timeout.ts';
import { DatabaseAway, driverError } from './database-away.ts';
import type { Schema } from './schema.ts';

/**
 * Maximum number of database connections of one process, for API calls and jobs. 26 with the connections for edges; the embedded
 * PostgreSQL allows 57, enough for two platforms and the operator's commands.
 * @limit operator: Database connections per platform process, for calls and jobs | further calls wait
 */
const DATABASE_CONNECTIONS = 18;
/** Time limit for connecting to the database. Afterwards the database counts as unavailable. */
const DATABASE_CONNECT_TIMEOUT_MS = 5000;
/**
 * Maximum running time of a statement. PostgreSQL itself ends longer statements.
 * @limit operator: Database statement, running time | PostgreSQL ends the statement; 503 `DATABASE_AWAY`
 */
const DATABASE_STATEMENT_TIMEOUT_MS = 15_000;
/** Extra wait after the statement timeout. A database that has not even reported the timeout by then counts as unavailable. */
const DATABASE_ANSWER_GRACE_MS = 2000;
/** Time after which an idle connection to a database on another machine is closed, except the last one. */
const REMOTE_IDLE_MS = 30_000;
/**
 * The same for a database behind a socket of this machine. Short, because each connection has a process of PostgreSQL with several MB, a
 * server at rest needs only one, and a new local connection takes milliseconds.
 */
const LOCAL_IDLE_MS = 2000;

/** A URL without a host name contains the folder of a socket. */
const isLocal = (url: string): boolean => /^postgres(?:ql)?:\/\/\//.test(url);

export type Db = Kysely<Schema>;

export interface DatabaseOptions {
  /** A postgres://… URL, including the password. */
  readonly url: Secret;
  readonly logger: Logger;
  /** Maximum number of connections in the pool. */
  readonly connections?: number;
  /** Time limit for getting a connection, and for running a statement. */
  readonly timeoutMs?: number;
  /** True if database statements run without a time limit. */
  readonly patient?: boolean;
}

const INT8 = 20;
const DATE = 1082;

/**
 * Selects the parser of a column type. A bigint becomes a number, exact up to 2^53. A date stays text, because a Date would shift with
 * the process's time zone.
 */
const parserOf = (oid: number, format?: 'text' | 'binary'): ((text: string) => unknown) => {
  if (oid === INT8) return Number;
  if (oid === DATE) return String;
  return pg.types.getTypeParser(oid, format as 'text') as (text: string) => unknown;
};

export class Database {
  readonly db: Db;
  readonly pool: pg.Pool;
  readonly #isPooled: () => boolean;
  #closing: Promise<void> | undefined;

  constructor({ url, logger, connections, timeoutMs, patient = false }: DatabaseOptions) {
    const statementTimeoutMs = patient ? 0 : (timeoutMs ?? DATABASE_STATEMENT_TIMEOUT_MS);
    this.pool = new pg.Pool({
      connectionString: url.reveal(),
      max: connections ?? DATABASE_CONNECTIONS,
      connectionTimeoutMillis: timeoutMs ?? DATABASE_CONNECT_TIMEOUT_MS,
      min: 1,
      idleTimeoutMillis: isLocal(url.reveal()) ? LOCAL_IDLE_MS : REMOTE_IDLE_MS,
      application_name: 'tunnel-platform',
      keepAlive: true,
      types: { getTypeParser: parserOf as typeof pg.types.getTypeParser },
    });
    // The next query replaces a broken idle connection. Without this listener, the error would end the process.
    this.pool.on('error', (error) => {
      // While the pool is closing, lost connections are expected, for example because an embedded server stops first.
      if (this.#closing === undefined) logger.warn({ reason: error.message }, 'a database connection was lost');
    });
    // The pool listens only to idle connections. Without this listener, a connection that breaks between two queries of a transaction
    // would also end the process; with it, the next query fails.
    this.pool.on('connect', (client) => client.on('error', () => {}));
    const answersMs = patient ? null : statementTimeoutMs + DATABASE_ANSWER_GRACE_MS;
    const connectMs = timeoutMs ?? DATABASE_CONNECT_TIMEOUT_MS;
    const watched = new WatchedPool(this.pool, { answersMs, connectMs, statementTimeoutMs });
    this.#isPooled = () => watched.isPooled;
    this.db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool: watched }) });
  }

  /** True if a pooler such as PgBouncer was detected in front of PostgreSQL. Known after the first connection. */
  get isPooled(): boolean {
    return this.#isPooled();
  }

  /**
   * Closes the pool, but does not destroy kysely: a destroyed kysely would reject later queries with its own message instead of the
   * driver's.
   */
  close(): Promise<void> {
    this.#closing ??= this.pool.end();
    return this.#closing;
  }
}

interface WatchLimits {
  /** Time limit for the database's response to a statement. Null means no limit. */
  readonly answersMs: number | null;
  /** Time limit for the first statement of a connection. */
  readonly connectMs: number;
  /** PostgreSQL's limit for a statement, and for an idle transaction. 0 means no limit. */
  readonly statementTimeoutMs: number;
}

/**
 * A pool that converts connection errors into DatabaseAway where the database is unavailable. Statements also end if the database neither
 * responds nor closes the connection, because the machine froze or a network drops all packets. PostgreSQL's statement timeout only helps
 * while PostgreSQL runs.
 * PostgreSQL's limits are set by a statement, because poolers reject them as parameters of a new connection. Behind a pooler that shares
 * connections between transactions, a session setting would stay on the connection and reach another client. There, the limits are set
 * together with the `begin` of every transaction, and single statements have the limits of the database role.
 */
class WatchedPool implements PostgresPool {
  readonly #pool: pg.Pool;
  readonly #limits: WatchLimits;
  /** Statements to append to the `begin` of a transaction, by connection. Connections without an entry are new. */
  readonly #begins = new WeakMap<pg.PoolClient, string>();
  isPooled = false;

  constructor(pool: pg.Pool, limits: WatchLimits) {
    this.#pool = pool;
    this.#limits = limits;
  }

  async connect(): Promise<PostgresPoolClient> {
    const client = await fromDriver(this.#pool.connect());
    const begin = this.#begins.get(client) ?? (await this.#setUp(client));
    return watchedClient(client, this.#limits.answersMs, begin);
  }

  end(): Promise<void> {
    return this.#pool.end();
  }

  async #setUp(client: pg.PoolClient): Promise<string> {
    const { connectMs, statementTimeoutMs: ms } = this.#limits;
    const setting = `select ${TIMEOUTS.map((name) => `set_config('${name}', '${ms}', false)`).join(', ')}`;
    try {
      const isDirect = await within(connectMs, client.query(`${setting} where ${isDirectCondition(client)}`));
      const begin = isDirect.rowCount === 1 ? '' : TIMEOUTS.map((name) => `; set local ${name} = ${ms}`).join('');
      this.isPooled ||= isDirect.rowCount !== 1;
      this.#begins.set(client, begin);
      return begin;
    } catch (error) {
      client.release(true);
      throw error;
    }
  }
}

const TIMEOUTS = ['statement_timeout', 'idle_in_transaction_session_timeout'];

/**
 * SQL condition that is true on a direct connection: the backend that runs the statement is the backend that the connection was opened
 * to. A pooler reports a different process id, or none.
 */
export const isDirectCondition = (client: pg.ClientBase): string =>
  `pg_backend_pid() = ${Number((client as { processID?: number | null }).processID ?? 0)}`;

const watchedClient = (client: pg.PoolClient, limitMs: number | null, begin: string): PostgresPoolClient => {
  let silence: DatabaseAway | undefined;
  const query = async (text: string, parameters: readonly unknown[]): Promise<unknown> => {
    // After a timeout, later statements such as the end of the transaction fail at once instead of waiting for another timeout.
    if (silence !== undefined) throw silence;
    // Statements without parameters can be sent together in one query, with one response.
    if (begin !== '' && BEGINS.test(text)) return query(text + begin, parameters);
    if (limitMs === null) return fromDriver(client.query(text, [...parameters]));
    try {
      return await within(limitMs, client.query(text, [...parameters]));
    } catch (error) {
      if (error instanceof DatabaseAway && error.cause instanceof Silence) silence = error;
      throw error;
    }
  };
  // A connection that did not respond is closed, so that no other query waits for it.
  return { query: query as PostgresPoolClient['query'], release: () => client.release(silence) };
};

/** Matches only the statement with which kysely begins a transaction. */
const BEGINS = /^(begin|start transaction[ a-z,]*)$/;

class Silence extends Error {}

/** Waits for a response. Rejects with DatabaseAway, with a Silence as its cause, after the time limit. */
const within = async <T>(ms: number, answer: Promise<T>): Promise<T> => {
  try {
    return await withTimeout(systemClock, fromDriver(answer), ms);
  } catch (error) {
    if (!(error instanceof TimeoutError)) throw error;
    throw new DatabaseAway(new Silence('the database does not respond', { cause: error }));
  }
};

const fromDriver = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work;
  } catch (error) {
    throw driverError(error);
  }
};
