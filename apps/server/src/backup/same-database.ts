// Keeps the backups of two databases apart. If a server loses its database and starts with an empty one, retention must not delete the
// backups of the lost database in favor of backups of the empty database.
import { join } from 'node:path';
import { Fault } from '@tunnel/errors';
import { IN_BACKUP } from './plan.rules.ts';
import { openRegular } from './regular-file.ts';
import type { StoredBackup } from './stored-backups.ts';

/** Bytes of the identity at the start of the control file. */
const IDENTITY_BYTES = 8;

/** Returns the identity that PostgreSQL gives to a new cluster and that its copies keep. Null if the control file cannot be read. */
const identityOf = async (cluster: string): Promise<string | null> => {
  try {
    const file = await openRegular(join(cluster, 'global', 'pg_control'));
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(IDENTITY_BYTES), 0, IDENTITY_BYTES, 0);
      return bytesRead === IDENTITY_BYTES ? buffer.toString('hex') : null;
    } finally {
      await file.close();
    }
  } catch {
    return null;
  }
};

/** Returns the backups that were taken of another database than the cluster. A backup without readable identity does not count as one. */
export const backupsOfOthers = async (
  backups: readonly StoredBackup[],
  clusterDir: string,
): Promise<ReadonlySet<StoredBackup>> => {
  const own = await identityOf(clusterDir);
  const others = new Set<StoredBackup>();
  for (const backup of backups) {
    const identity = await identityOf(join(backup.folder, IN_BACKUP.cluster));
    if (own !== null && identity !== null && identity !== own) others.add(backup);
  }
  return others;
};

/** Throws a fault if a folder contains backups of another database. */
export const refuseOthers = async (backups: readonly StoredBackup[], clusterDir: string): Promise<void> => {
  const [other] = await backupsOfOthers(backups, clusterDir);
  if (other === undefined) return;
  throw new Fault('CONFIG_BACKUP', {
    reason: `${other.folder} is a backup of another database: use a separate folder for this server, or restore that backup if its data is missing here`,
  });
};
