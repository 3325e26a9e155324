// Where everything of the embedded database is, below the data directory.
import { join } from 'node:path';

export interface PostgresFiles {
  readonly dataDir: string;
  /** The cluster: tables, log, settings. The only folder that belongs to the user the server runs as. */
  readonly cluster: string;
  /** The folder of the socket, unless its path is too long for one. */
  readonly run: string;
  /** What is ours: who holds the database, how others reach it, links to libraries. */
  readonly support: string;
  /** Of the one process that holds the database. */
  readonly lock: string;
  /** Links to the libraries, where the package lacks them. */
  readonly libraries: string;
  /** How other commands reach the running server. */
  readonly connection: string;
}

export const postgresFiles = (dataDir: string): PostgresFiles => {
  const cluster = join(dataDir, 'postgres');
  const support = join(dataDir, 'postgres-support');
  return {
    dataDir,
    cluster,
    run: join(cluster, 'run'),
    support,
    lock: join(support, 'lock.json'),
    libraries: join(support, 'lib'),
    connection: join(support, 'connection.json'),
  };
};
