// An embedded database that lets its superuser in, as tests need it that make databases of their own. A server in earnest lets in one role.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Secret } from '@tunnel/runtime';

/** Gives the setting `hba_file`. The folder keeps others away. */
export const openToAll = (dataDir: string): string => {
  const file = join(dataDir, 'test-access.conf');
  writeFileSync(file, 'local all all trust\n', { mode: 0o644 });
  return file;
};

export const superuserUrl = (socketFolder: string): Secret =>
  new Secret(`postgres:///postgres?user=postgres&host=${encodeURIComponent(socketFolder)}`);
