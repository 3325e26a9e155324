// `tunnel-server backup`: takes, lists, checks and restores backups of the embedded database and the data directory.
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { ServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';
import { checkSchema, Database, markRestored } from '@tunnel/platform';
import { createLogger, type Secret, systemClock } from '@tunnel/runtime';
import { Command, InvalidArgumentError } from 'commander';
import { type Connect, connectTo } from '../backup/connect.ts';
import { type CreatedBackup, createBackup } from '../backup/create.ts';
import { type ListedBackup, listBackups } from '../backup/list.ts';
import { KEY_FILES } from '../backup/plan.rules.ts';
import { timeText } from '../backup/ranges.rules.ts';
import { type Restored, restoreBackup } from '../backup/restore.ts';
import { applyRetention } from '../backup/retention.ts';
import { backupDirProblem, backupFolders, logModeOf } from '../backup/settings.ts';
import { type Verified, verifyBackups } from '../backup/verify.ts';
import { VERSION } from '../bundle.ts';
import { lockDataDir, openDataDir } from '../data-dir/data-dir.ts';
import { embeddedUrl } from '../embedded-postgres/connection.ts';
import { EmbeddedPostgres } from '../embedded-postgres/embedded-postgres.ts';
import { type LogMode, lastLogMode } from '../embedded-postgres/log-mode.ts';
import { postgresFiles } from '../embedded-postgres/postgres-files.ts';
import { EXIT_OK, EXIT_UNEXPECTED } from '../process/problem-report.ts';
import { consoleOperator, sayTo, subcommand } from './database-commands.ts';
import { type JsonFlags, loadConfig, tableText } from './shared.ts';

const logger = createLogger({ level: 'warn', format: 'human', stream: process.stderr });

type Finish = (code: number) => void;

export const backup = (finish: Finish): Command =>
  new Command('backup')
    .description('Back up and restore the embedded database and the data directory')
    .addCommand(createCommand(finish))
    .addCommand(listCommand(finish))
    .addCommand(verifyCommand(finish))
    .addCommand(restoreCommand(finish));

const refuse = (reason: string): Fault => new Fault('CONFIG_BACKUP', { reason });

/** Loads the configuration. Throws a fault if the server uses an external PostgreSQL, which has its own tools for backups. */
const loadBackupConfig = (flags: JsonFlags): ServerConfig => {
  const config = loadConfig(flags, process.env);
  if (config.database.url.reveal() === '') return config;
  throw refuse(
    'this server uses an external PostgreSQL (`[database] url`), and tunnel-server backs up only its embedded database: docs/backup.md lists the tools for an external one',
  );
};

const folderIfSet = ({ backup: { dir } }: ServerConfig): string | null => (dir === '' ? null : resolve(dir));

const folderOf = ({ backup: { dir } }: ServerConfig): string => {
  if (dir !== '') return resolve(dir);
  throw refuse('backups are off: set `[backup] dir` to the folder of the backups');
};

const onProgress = (line: string): void => {
  if (process.stderr.isTTY) process.stderr.write(`${line}\n`);
};

// ---- create ----

interface CreateFlags extends JsonFlags {
  readonly to?: string;
}

const createCommand = (finish: Finish): Command =>
  subcommand('create', 'Take a backup, beside the running server or without it', 'backup create')
    .option('--to <dir>', 'Folder for the backup (default: `[backup] dir`)')
    .action(async (flags: CreateFlags) => {
      const config = loadBackupConfig(flags);
      const dir = flags.to === undefined ? folderOf(config) : targetIn(flags.to, config);
      const made = await createIn(dir, config);
      sayTo(finish)(flags, made.name, { ...made, dir });
    });

/** Returns the folder of `--to`. Throws a fault if `[backup] dir` could not be that folder. */
const targetIn = (to: string, { backup: settings, data_dir }: ServerConfig): string => {
  const expected = backupDirProblem({ backup: { ...settings, dir: to }, data_dir });
  if (to === '' || expected !== null) throw refuse(`--to "${to}" must be ${expected ?? 'a folder'}`);
  return resolve(to);
};

const createIn = async (dir: string, config: ServerConfig): Promise<CreatedBackup> => {
  const dataDir = await openDataDir(config.data_dir);
  const files = postgresFiles(dataDir);
  if (!existsSync(join(files.cluster, 'PG_VERSION'))) throw refuse(`${dataDir} contains no embedded database`);
  const { backup: settings } = config;
  const create = (connect: Connect): Promise<CreatedBackup> =>
    createBackup({
      clusterDir: files.cluster,
      dataDir,
      backupDir: dir,
      connect,
      clock: systemClock,
      keys: settings.keys,
      walDir: settings.dir !== '' && settings.wal ? backupFolders(settings.dir).wal : null,
      version: VERSION,
      logger,
      onProgress,
    });
  const running = embeddedUrl(dataDir);
  if (running !== null) return create(await backupConnection(running, dataDir));
  // The lock keeps a server from starting meanwhile.
  const lock = lockDataDir(dataDir);
  const postgres = new EmbeddedPostgres({
    dataDir,
    logger,
    clock: systemClock,
    log: logModeFor(config, lastLogMode(files)),
  });
  try {
    const { url } = await postgres.start();
    const made = await create(connectTo(url));
    // A running server applies the retention itself.
    if (dir === folderIfSet(config)) {
      const { cluster: clusterDir } = files;
      await applyRetention({ backupDir: dir, clusterDir, keep: settings.keep, logger });
    }
    return made;
  } finally {
    await postgres.stop();
    lock.release();
  }
};

/** Returns the log mode for a backup of a stopped server: the mode of its settings, or else at least a mode that allows backups. */
const logModeFor = ({ backup: settings }: ServerConfig, last: LogMode): LogMode => {
  if (settings.dir !== '') return logModeOf(settings);
  return last === 'minimal' ? 'replica' : last;
};

/** Returns how to connect to a running server. Throws a fault if the server runs without `[backup] dir`. */
const backupConnection = async (url: Secret, dataDir: string): Promise<Connect> => {
  const connect = connectTo(url);
  const connection = await connect();
  try {
    const [row] = await connection.query<{ ready: boolean }>(
      "select current_setting('wal_level') <> 'minimal' and has_function_privilege('pg_backup_start(text, boolean)', 'execute') as ready",
    );
    if (row?.ready === true) return connect;
  } finally {
    await connection.close();
  }
  throw refuse(
    `the server on ${dataDir} runs without \`[backup] dir\`: set the key and restart the server, or stop the server and run this command again`,
  );
};

// ---- list and verify ----

const listCommand = (finish: Finish): Command =>
  subcommand('list', 'List backups and the times they can be restored to', 'backup list').action(
    async (flags: JsonFlags) => {
      const dir = folderOf(loadBackupConfig(flags));
      const backups = await listBackups(dir);
      sayTo(finish)(flags, listText(backups, dir), backups);
    },
  );

const listText = (backups: readonly ListedBackup[], dir: string): string =>
  backups.length === 0
    ? `no backups in ${dir} yet: tunnel-server backup create`
    : tableText(
        ['NAME', 'MB', 'RESTORE FROM', 'RESTORE TO', 'STATE'],
        backups.map(({ name, bytes, wal_from, wal_to, ok }) => [
          name,
          (bytes / 1e6).toFixed(0),
          wal_from ?? '-',
          wal_to ?? '-',
          ok ? 'ok' : 'damaged',
        ]),
      );

const verifyCommand = (finish: Finish): Command =>
  subcommand('verify', 'Check every file of the backups; exit with 1 if a file is bad', 'backup verify')
    .argument('[name]', 'Name of a backup (default: all)')
    .action(async (name: string | undefined, flags: JsonFlags) => {
      const dir = folderOf(loadBackupConfig(flags));
      const results = await verifyBackups({ backupDir: dir, name, clock: systemClock });
      if (results === null) throw refuse(`${dir} contains no backup ${name}: see \`tunnel-server backup list\``);
      const problems = [...new Set(results.flatMap((result) => result.problems))];
      for (const problem of problems) process.stderr.write(`tunnel-server: ${problem}\n`);
      if (flags.json === true) process.stdout.write(`${JSON.stringify(results)}\n`);
      else if (results.length === 0) process.stdout.write(`no backups in ${dir} yet\n`);
      else process.stdout.write(results.map((result) => `${verifiedText(result)}\n`).join(''));
      finish(problems.length === 0 ? EXIT_OK : EXIT_UNEXPECTED);
    });

const verifiedText = (verified: Verified): string =>
  [
    stateText(verified),
    ...verified.gaps.map((to) => `  the log after this backup has a gap: restores of this backup end at ${to}`),
  ].join('\n');

const stateText = ({ name, files, bytes, segments, wal_to, problems }: Verified): string =>
  problems.length === 0
    ? `ok: ${name}, ${files} files, ${(bytes / 1e6).toFixed(0)} MB, ${segments} ${segments === 1 ? 'segment' : 'segments'} of the log, up to ${wal_to}`
    : `damaged: ${name}`;

// ---- restore ----

interface RestoreFlags extends JsonFlags {
  readonly from: string;
  readonly to: string;
  readonly time?: number;
  readonly revokeSessions?: boolean;
}

/** A time with date, time of day and time zone. Without a zone, the same text would mean different moments on different machines. */
const ISO_TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)$/;

const timeIn = (text: string): number => {
  // Date.parse takes a day that does not exist, such as February 30, for a day of the next month.
  const isDay = new Date(`${text.slice(0, 10)}T00:00:00Z`).getUTCDate() === Number(text.slice(8, 10));
  const at = ISO_TIME.test(text) && isDay ? Date.parse(text.replace(' ', 'T')) : Number.NaN;
  if (Number.isNaN(at)) throw new InvalidArgumentError('Use a time with its zone, such as 2026-11-19T08:30:00Z.');
  return at;
};

const restoreCommand = (finish: Finish): Command =>
  subcommand(
    'restore',
    'Restore a backup into a new data directory',
    'backup restore --from /srv/backups --to /var/lib/tunnel-restored --time 2026-11-19T08:30:00Z',
  )
    .requiredOption('--from <dir>', 'Folder of the backups, or of one backup')
    .requiredOption('--to <data-dir>', 'New data directory; missing or empty')
    .option('--time <time>', 'Moment to restore (default: the latest)', timeIn)
    .option('--revoke-sessions', 'End all sessions of the dashboard and of apps')
    .action(async (flags: RestoreFlags) => {
      loadBackupConfig(flags);
      const { from, to, time: at = null, revokeSessions = false } = flags;
      let pending: readonly string[] | null = [];
      const restored = await restoreBackup({
        ...{ from, to, at, clock: systemClock, logger, onProgress },
        finish: async (url, reached) => {
          pending = await markInDatabase(url, reached, revokeSessions);
        },
      });
      const json = { name: restored.name, restored_to: timeText(restored.at), data_dir: resolve(to), pending };
      sayTo(finish)(flags, restoredText(restored, { to: resolve(to), pending, revokeSessions }), json);
    });

/**
 * Marks the restored database. Returns the migrations that the next start of this version will run, or null if only a newer version can
 * run on the database.
 */
const markInDatabase = async (url: Secret, at: number, revokeSessions: boolean): Promise<string[] | null> => {
  const database = new Database({ url, logger, connections: 2, patient: true });
  try {
    await markRestored(database.db, consoleOperator(), { at, now: systemClock.now(), revokeSessions });
    const { pending } = await checkSchema(database.db, { version: VERSION });
    return pending.map(({ name }) => name);
  } catch (error) {
    if (error instanceof Fault && error.code === 'CONFIG_DATABASE_NEWER') return null;
    throw error;
  } finally {
    await database.close();
  }
};

interface Told {
  readonly to: string;
  readonly pending: readonly string[] | null;
  readonly revokeSessions: boolean;
}

const restoredText = ({ at, lacksKeys, version }: Restored, { to, pending, revokeSessions }: Told): string => {
  const time = timeText(at);
  const steps = [
    ...(lacksKeys ? [`put your copies of ${KEY_FILES.join(', ')} into ${to}: the backup was taken without keys`] : []),
    'put key files and certificates that server.toml names outside of the data directory back in place',
    startText(to, pending, version),
  ];
  const sessions = revokeSessions
    ? `All sessions have ended. API keys that were revoked after ${time} are valid again: revoke them once more.`
    : `Sessions and API keys that were revoked after ${time} are valid again. To end all sessions, restore with --revoke-sessions.`;
  return [`restored to ${time}`, '', 'Next:', ...steps.map((step) => `  - ${step}`), '', sessions].join('\n');
};

const startText = (to: string, pending: readonly string[] | null, version: string): string => {
  const start = `start the server with --data-dir ${to}`;
  if (pending === null)
    return `${start}, in version ${version} or newer: the database is too new for version ${VERSION}`;
  return pending.length === 0 ? start : `${start}; the start runs ${pending.length} migrations`;
};
