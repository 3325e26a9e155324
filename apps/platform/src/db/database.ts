// The connection pool and the typed queries over it. Connections are made when they are needed: a database that is away at
// the start, or goes away later, is an error of the query that met it and of nothing else.
import { type Logger, type Secret, systemClock } from '@tunnel/runtime';
import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely';
import pg from 'pg';
import { TimeoutError, withTimeout } from '../timeout.ts';
import { DatabaseAway, driverError } from './database-away.ts';
import type { Schema } from './schema.ts';

/**
 * Database connections of one process, for API calls and jobs. With those for edges 26: the embedded PostgreSQL gives 57 to two platforms and the operator's commands.
 * @limit operator: Database connections per platform process, for calls and jobs | further calls wait
 */
const DATABASE_CONNECTIONS = 18;
/** A database that does not take a connection within this time is away. */
const DATABASE_CONNECT_TIMEOUT_MS = 5000;
/**
 * PostgreSQL itself ends a statement that runs longer.
 * @limit operator: Database statement, running time | PostgreSQL ends the statement; 503 `DATABASE_AWAY`
 */
const DATABASE_STATEMENT_TIMEOUT_MS = 15_000;
/** Longer than that, a database that has not even said so is taken for one that is away. */
const DATABASE_ANSWER_GRACE_MS = 2000;
/** An idle connection is closed after this time. */
const DATABASE_IDLE_MS = 30_000;

export type Db = Kysely<Schema>;

export interface DatabaseOptions {
  /** postgres://…, with the password in it. */
  readonly url: Secret;
  readonly logger: Logger;
  /** Connections at once. */
  readonly connections?: number;
  /** For a connection to be had, and for a statement. */
  readonly timeoutMs?: number;
  /** No statement is cut short. */
  readonly patient?: boolean;
}

const INT8 = 20;
const DATE = 1082;

/** Counts are exact up to 2^53; days stay text, because a Date would move with the zone of the process. */
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
      idleTimeoutMillis: DATABASE_IDLE_MS,
      application_name: 'tunnel-platform',
      keepAlive: true,
      types: { getTypeParser: parserOf as typeof pg.types.getTypeParser },
    });
    // An idle connection that breaks is replaced by the next query; without a listener it would end the process.
    this.pool.on('error', (error) => {
      // Those that are told goodbye may hear first that an embedded server stops.
      if (this.#closing === undefined) logger.warn({ reason: error.message }, 'a database connection was lost');
    });
    // So would one that breaks between two queries of a transaction: the pool listens to idle ones alone. The next query fails.
    this.pool.on('connect', (client) => client.on('error', () => {}));
    const answersMs = patient ? null : statementTimeoutMs + DATABASE_ANSWER_GRACE_MS;
    const connectMs = timeoutMs ?? DATABASE_CONNECT_TIMEOUT_MS;
    const watched = new WatchedPool(this.pool, { answersMs, connectMs, statementTimeoutMs });
    this.#isPooled = () => watched.isPooled;
    this.db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool: watched }) });
  }

  /** Whether a pooler such as PgBouncer was found between us and PostgreSQL. Known from the first connection on. */
  get isPooled(): boolean {
    return this.#isPooled();
  }

  /** The pool alone: kysely, once destroyed, would refuse later queries with words of its own instead of the driver's. */
  close(): Promise<void> {
    this.#closing ??= this.pool.end();
    return this.#closing;
  }
}

interface WatchLimits {
  /** For a statement to be answered; null: it may take as long as it likes. */
  readonly answersMs: number | null;
  /** For the first statement of a connection. */
  readonly connectMs: number;
  /** For PostgreSQL itself to end a statement, or a transaction that stands still. 0: never. */
  readonly statementTimeoutMs: number;
}

/**
 * A pool that says of every error of its connections whether the database is away. Its statements end also when the database neither
 * answers nor hangs up: its machine froze, or a network swallows everything. PostgreSQL's own limit of a statement helps only while
 * PostgreSQL runs.
 *
 * PostgreSQL's limits are set by a statement, because poolers refuse them as parameters of a new connection. Behind a pooler that
 * shares connections by transaction, a setting of the session would stay with the connection, which another client gets next. There the
 * limits are set with the `begin` of each transaction, and single statements have the limits of the database role.
 */
class WatchedPool implements PostgresPool {
  readonly #pool: pg.Pool;
  readonly #limits: WatchLimits;
  /** What each connection begins a transaction with besides; those that are not in it are new. */
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

/** True where the process that runs a statement is the one that the connection was made to. A pooler names another one, or none. */
export const isDirectCondition = (client: pg.ClientBase): string =>
  `pg_backend_pid() = ${Number((client as { processID?: number | null }).processID ?? 0)}`;

const watchedClient = (client: pg.PoolClient, limitMs: number | null, begin: string): PostgresPoolClient => {
  let silence: DatabaseAway | undefined;
  const query = async (text: string, parameters: readonly unknown[]): Promise<unknown> => {
    // What comes after, as the end of a transaction, would wait as long again.
    if (silence !== undefined) throw silence;
    // Statements without parameters are sent together, and answered together.
    if (begin !== '' && BEGINS.test(text)) return query(text + begin, parameters);
    if (limitMs === null) return fromDriver(client.query(text, [...parameters]));
    try {
      return await within(limitMs, client.query(text, [...parameters]));
    } catch (error) {
      if (error instanceof DatabaseAway && error.cause instanceof Silence) silence = error;
      throw error;
    }
  };
  // One that did not answer is closed: nobody else should wait on it.
  return { query: query as PostgresPoolClient['query'], release: () => client.release(silence) };
};

/** As kysely writes it, and nothing else. */
const BEGINS = /^(begin|start transaction[ a-z,]*)$/;

class Silence extends Error {}

/** Fails with DatabaseAway, and a Silence as its cause, when there is no answer in time. */
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
