// How the embedded database writes its write-ahead log (WAL), which decides which backups are possible, and the folder through which
// finished segments leave the database (the spool). The mode is a decision of the settings, remembered in the cluster.
import { chownSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { syncFolderSync } from '@tunnel/runtime';
import { type PostgresFiles, SPOOL } from './postgres-files.ts';
import type { RunAs } from './run-as.ts';

/**
 * - `minimal`: the log serves only the recovery after a crash. No backup of a running server is possible.
 * - `replica`: the log can restore a backup that was copied from a running server.
 * - `archive`: also, each finished segment is copied to the spool, so that any moment can be restored.
 */
export type LogMode = 'minimal' | 'replica' | 'archive';

/** User of the database server, who owns all files in the cluster. */
type Owner = Pick<RunAs, 'uid' | 'gid'>;

/**
 * File in the spool whose name tells PostgreSQL whether to copy segments to the spool. A rename changes the state, because a rename also
 * succeeds on a full disk.
 */
export const SWITCHED_ON = 'switched-on';
export const SWITCHED_OFF = 'switched-off';

/**
 * Seconds until PostgreSQL ends a segment that is not full. Commits of this time are lost with the disk. The documented limit is 60 s; the
 * rest is for the way of the segment to the archive.
 */
const SEGMENT_SECS = 55;

/** Log kept for a backup in progress if there is no archive from which the backup could take the log. */
const KEPT_LOG = '256MB';

/**
 * Copies a finished segment to the spool; run by a shell as the user of the database server, in the folder of the cluster. The copy gets
 * its name when it is complete and on disk, and never replaces a file. While the archive is switched off, segments are not copied, so that
 * PostgreSQL can reuse their space.
 */
const ARCHIVE_COMMAND = [
  `test -e ${SPOOL}/${SWITCHED_OFF} || {`,
  `test ! -e "${SPOOL}/%f"`,
  `&& cp "%p" "${SPOOL}/%f.part"`,
  `&& sync "${SPOOL}/%f.part"`,
  `&& mv "${SPOOL}/%f.part" "${SPOOL}/%f"`,
  `&& sync ${SPOOL}; }`,
].join(' ');

/** PostgreSQL settings of a mode. Also apply to single-user mode, which otherwise would write a part of the log in a different way. */
export const logSettings = (mode: LogMode): Readonly<Record<string, string>> => {
  switch (mode) {
    case 'minimal':
      return { wal_level: 'minimal', archive_mode: 'off' };
    case 'replica':
      return { wal_level: 'replica', archive_mode: 'off', wal_keep_size: KEPT_LOG };
    case 'archive':
      return {
        wal_level: 'replica',
        archive_mode: 'on',
        archive_timeout: String(SEGMENT_SECS),
        archive_command: ARCHIVE_COMMAND,
      };
  }
};

/** Returns the mode of the cluster's last start. Programs that only visit the database keep this mode. */
export const lastLogMode = ({ logMode }: PostgresFiles): LogMode => {
  const found = readMark(logMode);
  return found === 'replica' || found === 'archive' ? found : 'minimal';
};

/**
 * Prepares the cluster for a mode, before the database server starts. If PostgreSQL has written log that is not archived since the last
 * start in this mode, archiving begins switched off: the archiver switches it on at a segment that contains no such log.
 */
export const prepareLogMode = (files: PostgresFiles, mode: LogMode, user: RunAs): void => {
  const last = lastLogMode(files);
  if (last === mode && isFolder(files.spool) === (mode === 'archive')) return;
  if (mode !== 'archive') {
    // The mode is stored first. In the reverse order, a crash in between would leave an archive with an unnoticed gap.
    writeMark(files.logMode, mode, user);
    rmSync(files.spool, { recursive: true, force: true });
    return;
  }
  rmSync(files.spool, { recursive: true, force: true });
  makeSpool(files.spool, user);
  writeMark(files.logMode, mode, user);
};

/** Creates an empty spool, switched off. */
export const makeSpool = (spool: string, user: Owner): void => {
  mkdirSync(spool, { mode: 0o700 });
  giveFile(spool, user);
  writeMark(join(spool, SWITCHED_OFF), '', user);
  syncFolderSync(spool);
  syncFolderSync(dirname(spool));
};

const isFolder = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

// Marks: small files in the cluster that remember what was done to it, and so are part of every copy of the cluster.

export const readMark = (mark: string): string | null => {
  try {
    return readFileSync(mark, 'utf8').trim();
  } catch {
    return null;
  }
};

export const writeMark = (mark: string, text: string, user: Owner): void => {
  // The old file is removed first, so that the write never follows a symbolic link created by the user of the database server.
  rmSync(mark, { force: true });
  writeFileSync(mark, `${text}\n`, { mode: 0o600, flag: 'wx' });
  giveFile(mark, user);
};

const giveFile = (path: string, { uid, gid }: Owner): void => {
  if (process.getuid?.() === 0) chownSync(path, uid, gid);
};
