// Calls back when PostgreSQL notifies of a change. Every process has one listening connection, which is reconnected after a loss.
// Listening does not work behind a connection pooler; the tables are polled every second then.
import { type Clock, type Logger, SingleFlight, type Timer } from '@tunnel/runtime';
import type pg from 'pg';
import { isDirectCondition } from '../../db/database.ts';
import { CHANGES_CHANNEL } from '../shared/edge-changes.ts';

/** Polling interval for changes, in addition to PostgreSQL's notifications. */
const CHANGES_POLL_MS = 1000;

export interface ChangeListenerOptions {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly onCall: () => void;
}

const isDirect = async (client: pg.PoolClient): Promise<boolean> =>
  (await client.query(`select where ${isDirectCondition(client)}`)).rowCount === 1;

export class ChangeListener {
  readonly #options: ChangeListenerOptions;
  #client: pg.PoolClient | null = null;
  readonly #connects = new SingleFlight(() => this.#connect());
  #timer: Timer | null = null;
  #running = false;
  /** True if a connection pooler was detected, which could hand the listening connection to another client. */
  #isPooled = false;

  constructor(options: ChangeListenerOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#running) return;
    this.#running = true;
    this.#listen();
    // Polls in any case, because a notification can be lost together with its connection.
    this.#timer = this.#options.clock.setInterval(() => {
      if (this.#client === null && !this.#isPooled) this.#listen();
      this.#options.onCall();
    }, CHANGES_POLL_MS);
  }

  async stop(): Promise<void> {
    this.#running = false;
    this.#timer?.cancel();
    await this.#connects.current;
    this.#drop();
  }

  #listen(): void {
    void this.#connects.run();
  }

  async #connect(): Promise<void> {
    const { pool, logger, onCall } = this.#options;
    let client: pg.PoolClient | null = null;
    try {
      client = await pool.connect();
      client.on('error', (error) => this.#lost(error));
      if (!(await isDirect(client))) {
        this.#isPooled = true;
        client.release(true);
        logger.warn(
          { key: 'database.direct_url' },
          'cannot listen for changes through a connection pooler; polling every second instead. Set direct_url to the address of PostgreSQL',
        );
        return;
      }
      client.on('notification', onCall);
      await client.query(`listen ${CHANGES_CHANNEL}`);
      if (!this.#running) {
        client.release(true);
        return;
      }
      this.#client = client;
      // The call covers changes made before the connection was listening.
      onCall();
    } catch (error) {
      client?.release(true);
      logger.debug({ reason: (error as Error).message }, 'not listening for changes yet');
    }
  }

  #lost(error: Error): void {
    if (this.#client === null) return;
    this.#options.logger.warn({ reason: error.message }, 'the connection that listens for changes was lost');
    this.#drop();
  }

  /** Closes the connection. The connection must not return to the pool, because it would continue to listen there. */
  #drop(): void {
    const client = this.#client;
    this.#client = null;
    client?.removeAllListeners('notification');
    client?.release(true);
  }
}
