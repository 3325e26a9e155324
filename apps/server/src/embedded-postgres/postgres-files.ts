// Where everything of the embedded database is, below the data directory.
import { join } from 'node:path';

export interface PostgresFiles {
  /** All of it; the only folder that belongs to the user the server runs as. */
  readonly root: string;
  /** The cluster: tables, log, settings. */
  readonly cluster: string;
  /** The folder of the socket, unless its path is too long for one. */
  readonly run: string;
  /** Links to the libraries, where the package lacks them. */
  readonly libraries: string;
  /** How other commands reach the running server. */
  readonly connection: string;
}

export const postgresFiles = (dataDir: string): PostgresFiles => {
  const root = join(dataDir, 'postgres');
  return {
    root,
    cluster: join(root, 'data'),
    run: join(root, 'run'),
    libraries: join(root, 'lib'),
    connection: join(root, 'connection.json'),
  };
};
