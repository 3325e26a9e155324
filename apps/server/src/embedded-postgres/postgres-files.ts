// Where everything of the embedded database is, below the data directory; and its bounds, by name.
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
  /** Of the one role that may log in. */
  readonly password: string;
  /** In the cluster, and so in every copy of it: the hash of the password that its role has. */
  readonly passwordMark: string;
  /** Who may log in, and how. */
  readonly access: string;
}

export const PASSWORD_MARK = 'tunnel-password.sha256';

export const postgresFiles = (dataDir: string): PostgresFiles => {
  const cluster = join(dataDir, 'postgres');
  const support = join(dataDir, 'postgres-support');
  return {
    dataDir,
    cluster,
    run: join(cluster, 'run'),
    support,
    lock: join(support, 'holder.json'),
    libraries: join(support, 'lib'),
    connection: join(support, 'connection.json'),
    password: join(support, 'password'),
    passwordMark: join(cluster, PASSWORD_MARK),
    access: join(support, 'pg_hba.conf'),
  };
};

export const POSTGRES_BOUNDS = {
  /** Recovery after a crash replays at most a gigabyte of log; a slow disk needs its time for that. */
  START_TIMEOUT_MS: 120_000,
  INIT_TIMEOUT_MS: 120_000,
  /** `fast`: open transactions are rolled back and everything is written. */
  FAST_STOP_MS: 10_000,
  /** `immediate`: nothing more is written; the next start replays the log. */
  IMMEDIATE_STOP_MS: 3000,
  /** After the server died: doubled with each start that fails, up to the longest. */
  RESTART_FIRST_MS: 100,
  RESTART_LONGEST_MS: 5000,
  /** Workers of a server that was killed hold its memory for a moment; a first start waits for them this long. */
  LEFTOVERS_MS: 15_000,
  POLL_MS: 20,
  /** For what a server that has ended said last: it says why. */
  LAST_LINES_MS: 1000,
  /** The shortest of the systems we run on: 104 on macOS with its end mark, 108 on Linux. */
  SOCKET_PATH_BYTES: 103,
  LOG_LINE_CHARS: 1000,
  KEPT_LOG_LINES: 20,
} as const;
