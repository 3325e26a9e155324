// The connection pool and the typed queries over it. Connections are made when they are needed: a database that is away at
// the start, or goes away later, is an error of the query that met it and of nothing else.
import { type Logger, type Secret, systemClock } from '@tunnel/runtime';
import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely';
import pg from 'pg';
import { LIMITS } from '../limits.ts';
import { TimeoutError, withTimeout } from '../timeout.ts';
import { DatabaseAway, driverError } from './database-away.ts';
import type { Schema } from './schema.ts';

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
  #closing: Promise<void> | undefined;

  constructor({ url, logger, connections, timeoutMs, patient = false }: DatabaseOptions) {
    const statementTimeoutMs = patient ? 0 : (timeoutMs ?? LIMITS.DATABASE_STATEMENT_TIMEOUT_MS);
    this.pool = new pg.Pool({
      connectionString: url.reveal(),
      max: connections ?? LIMITS.DATABASE_CONNECTIONS,
      connectionTimeoutMillis: timeoutMs ?? LIMITS.DATABASE_CONNECT_TIMEOUT_MS,
      idleTimeoutMillis: LIMITS.DATABASE_IDLE_MS,
      statement_timeout: statementTimeoutMs,
      idle_in_transaction_session_timeout: statementTimeoutMs,
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
    const answersMs = patient ? null : statementTimeoutMs + LIMITS.DATABASE_ANSWER_GRACE_MS;
    this.db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool: watchedPool(this.pool, answersMs) }) });
  }

  /** The pool alone: kysely, once destroyed, would refuse later queries with words of its own instead of the driver's. */
  close(): Promise<void> {
    this.#closing ??= this.pool.end();
    return this.#closing;
  }
}

/**
 * A pool that says of every error of its connections whether the database is away. Its statements end also when the database neither
 * answers nor hangs up: its machine froze, or a network swallows everything. PostgreSQL's own limit of a statement helps only while
 * PostgreSQL runs. `limitMs` null: they may take as long as they like.
 */
const watchedPool = (pool: pg.Pool, limitMs: number | null): PostgresPool => ({
  connect: async () => watchedClient(await fromDriver(pool.connect()), limitMs),
  end: () => pool.end(),
});

const watchedClient = (client: pg.PoolClient, limitMs: number | null): PostgresPoolClient => {
  let silence: DatabaseAway | undefined;
  const query = async (text: string, parameters: readonly unknown[]): Promise<unknown> => {
    // What comes after, as the end of a transaction, would wait as long again.
    if (silence !== undefined) throw silence;
    const answer = fromDriver(client.query(text, [...parameters]));
    if (limitMs === null) return answer;
    try {
      return await withTimeout(systemClock, answer, limitMs);
    } catch (error) {
      if (!(error instanceof TimeoutError)) throw error;
      silence = new DatabaseAway(new Error('the database does not answer', { cause: error }));
      throw silence;
    }
  };
  // One that did not answer is closed: nobody else should wait on it.
  return { query: query as PostgresPoolClient['query'], release: () => client.release(silence) };
};

const fromDriver = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work;
  } catch (error) {
    throw driverError(error);
  }
};
