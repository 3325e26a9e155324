// The first backup of a new server, which begins with the server itself.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { Harness } from './harness.fixture.ts';

const harness = new Harness();
afterEach(() => harness.close());

it('contains the keys that the server creates at its first start, without which no account could sign in after a restore', async () => {
  const backups = join(await harness.folder(), 'backups');
  await harness.stack({ command: 'stack', tables: `[backup]\ndir = "${backups}"` });
  const base = join(backups, 'base');
  const paths = await eventually(
    () => {
      const name = readdirSync(base).find((each) => !each.startsWith('.'));
      const { files } = JSON.parse(readFileSync(join(base, name ?? '', 'backup_manifest.json'), 'utf8')) as {
        files: { path: string }[];
      };
      return files.map(({ path }) => path);
    },
    { timeoutMs: 120_000, intervalMs: 100 },
  );
  expect(paths).toEqual(expect.arrayContaining(['keys/master-key', 'keys/login-secret', 'keys/admin-token']));
});
