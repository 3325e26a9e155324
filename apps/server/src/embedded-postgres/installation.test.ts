import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openInstallation } from './installation.ts';
import { postgresFiles } from './postgres-files.ts';

let root: TemporaryDirectory;
beforeEach(async () => {
  root = await temporaryDirectory();
});
afterEach(() => root.close());

it.runIf(existsSync('/proc/self/stat'))(
  'a database locked by a server of an earlier version is not opened',
  async () => {
    const { lock } = postgresFiles(root.path);
    expect(lock).toMatch(/postgres-support\/holder\.json$/);
    mkdirSync(dirname(lock), { recursive: true });
    const fields = readFileSync('/proc/self/stat', 'utf8')
      .replace(/^.*\)\s/s, '')
      .split(' ');
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    writeFileSync(lock, JSON.stringify({ pid: process.pid, began: `${boot} ${fields[19]}` }));
    await expect(openInstallation({ dataDir: root.path })).rejects.toMatchObject({ code: 'CONFIG_DATA_DIR_IN_USE' });
  },
);
