// A connection to the embedded database for backups. The driver is loaded with the first connection, because the parent process of a stack
// otherwise needs no database driver.
import type { Secret } from '@tunnel/runtime';

/** A single database session. A backup must begin and end in the same session. */
export interface BackupConnection {
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  close(): Promise<void>;
}

export type Connect = () => Promise<BackupConnection>;

/** Time limit for opening a connection to a database that is running on this machine. */
const CONNECT_MS = 10_000;

export const connectTo =
  (url: Secret): Connect =>
  async () => {
    const { default: pg } = await import('pg');
    const client = new pg.Client({ connectionString: url.reveal(), connectionTimeoutMillis: CONNECT_MS });
    // The loss of an idle connection is noticed by the next query. Without a listener, the loss would end the process.
    client.on('error', () => {});
    await client.connect();
    return {
      query: async <Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> =>
        (await client.query<Row>(text, [...values])).rows,
      close: () => client.end(),
    };
  };
