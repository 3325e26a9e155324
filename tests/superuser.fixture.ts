// Lets tests connect to an embedded database as its superuser, to create databases. A production server admits only a single role.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Secret } from '@tunnel/runtime';

/** Writes an access file for the setting `hba_file` and returns its path. The folder's permissions keep other users out. */
export const openToAll = (dataDir: string): string => {
  const file = join(dataDir, 'test-access.conf');
  writeFileSync(file, 'local all all trust\n', { mode: 0o644 });
  return file;
};

export const superuserUrl = (socketFolder: string): Secret =>
  new Secret(`postgres:///postgres?user=postgres&host=${encodeURIComponent(socketFolder)}`);
