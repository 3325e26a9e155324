// Paths of the embedded database below the data directory, and limits of the embedded database.
import { join } from 'node:path';

export interface PostgresFiles {
  readonly dataDir: string;
  /** Folder of the cluster: tables, write-ahead log and settings. The only folder that belongs to the user of the database server. */
  readonly cluster: string;
  /** Folder of the Unix socket, unless the path is too long for a socket. */
  readonly run: string;
  /** Folder with our own files: the lock, the connection file, the password, the access rules, and links to libraries. */
  readonly support: string;
  /** Lock file of the process that runs the database. */
  readonly lock: string;
  /** Folder with symbolic links to the libraries, used if the npm package lacks the links. */
  readonly libraries: string;
  /** File by which other commands connect to the running server. */
  readonly connection: string;
  /** File with the password of the only role that can connect. */
  readonly password: string;
  /** File with the hash of the role's current password. Stored in the cluster, and so part of every copy of the cluster. */
  readonly passwordMark: string;
  /** File with the access rules (pg_hba.conf). */
  readonly access: string;
  /** Folder with finished segments of the log on their way to the archive. Exists only while the log is archived. */
  readonly spool: string;
  /** File with the way in which the log was written since the last start. Stored in the cluster. */
  readonly logMode: string;
  /** File with the functions that the role can call for backups. Stored in the cluster. */
  readonly grantsMark: string;
}

export const PASSWORD_MARK = 'tunnel-password.sha256';
export const LOG_MODE_MARK = 'tunnel-log-mode';
/** Folder in the cluster for finished segments of the log on their way to the archive. */
export const SPOOL = 'tunnel-spool';

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
    spool: join(cluster, SPOOL),
    logMode: join(cluster, LOG_MODE_MARK),
    grantsMark: join(cluster, 'tunnel-backup-grants'),
  };
};

export const POSTGRES_BOUNDS = {
  /** Time limit for the server's start. Long, because recovery after a crash replays up to a gigabyte of log, possibly from a slow disk. */
  START_TIMEOUT_MS: 120_000,
  INIT_TIMEOUT_MS: 120_000,
  /** Time limit for a `fast` stop, which rolls back open transactions and writes all data. */
  FAST_STOP_MS: 10_000,
  /** Time limit for an `immediate` stop, which writes no data. The next start replays the log. */
  IMMEDIATE_STOP_MS: 3000,
  /** Pause before the first restart after a crash. The pause doubles with each failed start, up to RESTART_LONGEST_MS. */
  RESTART_FIRST_MS: 100,
  RESTART_LONGEST_MS: 5000,
  /** How long a first start waits for worker processes of a killed server, which hold shared memory for a moment. */
  LEFTOVERS_MS: 15_000,
  POLL_MS: 20,
  /** How long to wait for the last output of an ended server, because the output contains the reason. */
  LAST_LINES_MS: 1000,
  /**
   * Maximum length of a socket path in bytes, by the strictest supported system: 104 with the terminating zero byte on macOS, 108 on
   * Linux.
   */
  SOCKET_PATH_BYTES: 103,
  LOG_LINE_CHARS: 1000,
  KEPT_LOG_LINES: 20,
} as const;
