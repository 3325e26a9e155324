// What a backup contains: which files are copied, in which order, and where a copy is put. Pure functions on lists of paths; paths are
// relative to their folder, with slashes.

/** A file or folder found below a folder that is backed up. */
export interface Entry {
  readonly path: string;
  /** `other`: a socket, pipe or device. */
  readonly kind: 'file' | 'folder' | 'link' | 'other';
}

/** A file to copy into a backup. */
export interface PlannedFile {
  /** Path below the folder that is backed up. */
  readonly from: string;
  /** Path in the backup, which begins with one of the folders of a backup. */
  readonly to: string;
}

export interface Plan {
  readonly files: readonly PlannedFile[];
  /** Symbolic links that a backup cannot contain, because a restore could not put their targets back. */
  readonly refused: readonly string[];
}

/** Folders of a backup. `wal` has the write-ahead log that PostgreSQL needs to make the copied cluster consistent. */
export const IN_BACKUP = { cluster: 'cluster', data: 'data', keys: 'keys', wal: 'wal' } as const;

// ---- the cluster ----

/** Folders of a cluster whose content is left out: PostgreSQL creates the content again, or another part of the backup has it. */
const EMPTY_IN_COPY = new Set([
  'pg_wal',
  'pg_replslot',
  'pg_dynshmem',
  'pg_notify',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
]);

/** Every folder that PostgreSQL expects in a cluster. A restore creates all of them, because a backup lists files only. */
export const CLUSTER_FOLDERS: readonly string[] = [
  ...EMPTY_IN_COPY,
  ...['base', 'global', 'pg_commit_ts', 'pg_multixact', 'pg_multixact/members', 'pg_multixact/offsets', 'pg_stat'],
  ...['pg_logical', 'pg_logical/mappings', 'pg_logical/snapshots', 'pg_tblspc', 'pg_twophase', 'pg_xact'],
  ...['pg_wal/archive_status', 'pg_wal/summaries'],
];

/** Files at the top of a cluster that belong to the running server, or to a recovery of the past. */
const OF_THE_RUN = new Set([
  ...['postmaster.pid', 'postmaster.opts', 'backup_label', 'backup_label.old', 'tablespace_map', 'tablespace_map.old'],
  ...['backup_manifest', 'recovery.signal', 'standby.signal', 'postgresql.auto.conf.tmp', 'current_logfiles.tmp'],
]);

/** Folders of this program in a cluster: the socket, and the spool of the archive. */
const OF_THE_SERVER = new Set(['run', 'tunnel-spool']);

const CONTROL_FILE = 'global/pg_control';

/** Files without which a cluster cannot be opened. Other files can vanish while a backup is taken, and the log has their end. */
const NEEDED_IN_CLUSTER = new Set(['PG_VERSION', CONTROL_FILE]);

const TEMPORARY_FOLDER = /^pgsql_tmp/;
const RELATION_CACHE = /^pg_internal\.init/;
/** A temporary table, which belongs to a session: `t3_16384`. */
const TEMPORARY_TABLE = /^t\d+_\d+/;

const isInCopy = (path: string): boolean => {
  const parts = path.split('/');
  const [top = ''] = parts;
  const name = parts.at(-1) ?? '';
  if (parts.length === 1 && OF_THE_RUN.has(name)) return false;
  if (EMPTY_IN_COPY.has(top) || OF_THE_SERVER.has(top)) return false;
  if (parts.some((part) => TEMPORARY_FOLDER.test(part)) || RELATION_CACHE.test(name)) return false;
  return !(top === 'base' && TEMPORARY_TABLE.test(name));
};

/**
 * Plans the copy of a cluster. The control file comes last, so that its checkpoint is never older than the copied tables. Symbolic links
 * are refused, apart from `pg_wal`, which is not copied as a folder: the embedded database creates no links.
 */
export const planCluster = (entries: readonly Entry[]): Plan => {
  const inCopy = entries.filter(({ path }) => isInCopy(path));
  const paths = inCopy.filter(({ kind }) => kind === 'file').map(({ path }) => path);
  const ordered = [
    ...paths.filter((path) => path !== CONTROL_FILE).sort(),
    ...paths.filter((path) => path === CONTROL_FILE),
  ];
  return {
    files: ordered.map((from) => ({ from, to: `${IN_BACKUP.cluster}/${from}` })),
    refused: inCopy.filter(({ kind }) => kind === 'link').map(({ path }) => path),
  };
};

/** Returns whether a folder of the cluster has files to copy. */
export const entersCluster = (folder: string): boolean => isInCopy(`${folder}/any`);

/** Returns whether a file of the cluster can vanish while the cluster is copied. */
export const canVanish = (path: string): boolean => !NEEDED_IN_CLUSTER.has(path);

// ---- the rest of the data directory ----

/** Secrets that decrypt the rest of a backup, or that grant access. A backup has them in a separate folder. */
export const KEY_FILES: readonly string[] = ['master-key', 'certificate-key', 'login-secret', 'admin-token'];

/** Entries at the top of a data directory that are not backed up. */
const NOT_DATA = new Set(['postgres', 'postgres-support', 'run.json', 'mail', 'crashes']);
const UNFINISHED_CLUSTER = /^postgres\.unfinished\./;
/** Lock files, with the names used while a lock is taken over, and files not written completely. */
const MOMENTARY = /\.lock(?:\..+)?$|\.(?:new|tmp)$/;

export interface DataOptions {
  /** True if the backup contains the keys. */
  readonly keys: boolean;
}

/**
 * Plans the copy of everything in the data directory except the database. A link to a file counts as a file, because mounted secrets are
 * links; links to folders are refused.
 */
export const planData = (entries: readonly Entry[], { keys }: DataOptions): Plan => {
  const wanted = entries.filter(({ path }) => isData(path) && (keys || !KEY_FILES.includes(path)));
  return {
    files: wanted
      .filter(({ kind }) => kind === 'file')
      .map(({ path }) => ({ from: path, to: `${KEY_FILES.includes(path) ? IN_BACKUP.keys : IN_BACKUP.data}/${path}` }))
      .sort((a, b) => (a.to < b.to ? -1 : 1)),
    refused: wanted.filter(({ kind }) => kind === 'link').map(({ path }) => path),
  };
};

const isData = (path: string): boolean => {
  const [top = ''] = path.split('/');
  return !(NOT_DATA.has(top) || UNFINISHED_CLUSTER.test(top) || MOMENTARY.test(path));
};

/** Returns whether a folder of the data directory has files to copy. */
export const entersData = (folder: string): boolean => isData(folder);

// ---- names ----

const BACKUP_NAME = /^\d{8}T\d{6}Z(?:-\d{1,4})?$/;
const UNFINISHED_BACKUP = /^\.\d{8}T\d{6}Z(?:-\d{1,4})?\.part$/;

/** Returns whether a folder name is the name of a finished backup. */
export const isBackupName = (name: string): boolean => BACKUP_NAME.test(name);

/** Returns whether a folder name belongs to a backup that was not finished. */
export const isUnfinishedName = (name: string): boolean => UNFINISHED_BACKUP.test(name);

export const unfinishedName = (name: string): string => `.${name}.part`;

/** Names a backup after its time in UTC. If the name is taken, a number follows. */
export const backupName = (now: number, taken: ReadonlySet<string>): string => {
  const base = `${new Date(now).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`;
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? base : `${base}-${number}`;
    if (!taken.has(name)) return name;
  }
};

/** Orders backup names, oldest first. A number after the time is compared as a number. */
export const compareBackupNames = (a: string, b: string): number => {
  const [timeA = '', numberA = '1'] = a.split('-');
  const [timeB = '', numberB = '1'] = b.split('-');
  if (timeA !== timeB) return timeA < timeB ? -1 : 1;
  return Number(numberA) - Number(numberB);
};

/** Returns where a restore puts a file of a backup, below the new data directory. Null for a file that a restore does not copy. */
export const restoredPath = (path: string): string | null => {
  const [top = '', ...rest] = path.split('/');
  if (rest.length === 0) return null;
  if (top === IN_BACKUP.cluster) return `postgres/${rest.join('/')}`;
  return top === IN_BACKUP.data || top === IN_BACKUP.keys ? rest.join('/') : null;
};
