// An upgrade keeps the state files of an edge. Each file of the previous version is read, even with half a line at its end after a kill,
// and is written in the same form again.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FakeClock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EndpointsFile } from '../routing/endpoints-file.ts';
import { EARLIER } from './earlier-files.fixture.ts';
import { Journal } from './journal/journal.ts';
import { PlatformReservedNames } from './names/platform-reserved-names.ts';
import { StandaloneNamesFile } from './names/standalone-names-file.ts';
import { UsedNames } from './names/used-names.ts';
import { quiet } from './platform-backend.fixture.ts';

const { AT, HASH } = EARLIER;
const ALICE = { kind: 'account', accountId: 'alice' } as const;

let folder: TemporaryDirectory;
let clock: FakeClock;
let path: string;
beforeEach(async () => {
  folder = await temporaryDirectory();
  clock = new FakeClock();
  path = join(folder.path, 'file');
});
afterEach(() => folder.close());

describe.each(['', '{"half":"of a li', '{"kind":"usage","tun'])(
  'an upgrade from version 0.1.0 with a file ending in %j',
  (half) => {
    it('reads the journal and continues its record numbers', async () => {
      mkdirSync(path);
      const name = 'journal-000000000002.jsonl';
      writeFileSync(join(path, name), EARLIER.JOURNAL + half);
      const options = { folder: path, logger: quiet, newId: () => 'jrn_new', batch: { records: 100, bytes: 1 << 20 } };
      const journal = new Journal({ ...options, tailBytes: 1 << 20, queueBytes: 1 << 20, sentBytes: 1 << 20 });
      await journal.start();
      await journal.seal();
      expect(journal.batch).toMatchObject({
        journalId: 'jrn_1',
        first: 3,
        records: [{ kind: 'closed', tunnel_id: 'tun_0' }],
      });
      journal.acknowledged('jrn_1', 3);
      expect(journal.batch).toMatchObject({
        journalId: 'jrn_1',
        first: 4,
        records: [
          { kind: 'usage', tunnel_id: 'tun_1', requests: 2, bytes: 20, at: AT + 1 },
          { kind: 'usage', tunnel_id: 'tun_2', requests: 3, bytes: 30, at: AT + 2 },
        ],
      });
      await journal.close();
      expect(readdirSync(path).filter((file) => file === name)).toEqual([]);
    });

    it('reads the file of endpoints and rewrites it in the same form', async () => {
      writeFileSync(path, EARLIER.ENDPOINTS + half);
      const file = new EndpointsFile({ path, clock, logger: quiet });
      expect(await file.read()).toEqual({
        claims: [
          {
            tunnelId: 'tun_2',
            owner: { kind: 'operator' },
            secretHash: HASH,
            endpoint: { kind: 'port', transport: 'tcp', port: 20001 },
            group: { name: 'g', keyHash: HASH },
          },
          {
            tunnelId: 'tun_3',
            owner: { kind: 'account', accountId: 'bob' },
            secretHash: HASH,
            endpoint: { kind: 'domain', name: 'bücher.example', passesTls: true },
            group: null,
          },
        ],
        lastAliveAt: AT,
        end: 'stopped',
      });
      file.opened({
        tunnelId: 'tun_1',
        owner: ALICE,
        secretHash: HASH,
        endpoint: { kind: 'name', name: 'shop' },
        group: null,
      });
      await file.stopped();
      expect(EARLIER.ENDPOINTS).toContain(readFileSync(path, 'utf8').split('\n').slice(0, 3).join('\n'));
    });

    it('reads the file of reserved names', async () => {
      writeFileSync(path, EARLIER.RESERVED_NAMES + half);
      const link = { names: () => Promise.reject(new Error('away')) };
      const names = new PlatformReservedNames({ clock, logger: quiet, link, path, onDomains: () => {} });
      await names.start();
      expect([names.isReserved('shop'), names.isReserved('blog'), names.isReservedPort('tcp', 20042)]).toEqual([
        false,
        true,
        true,
      ]);
      expect(names.accountOfDomain('a.example')).toBe('alice');
      await names.stop();
    });

    it('reads the file of used names and keeps its header', async () => {
      writeFileSync(path, EARLIER.USED_NAMES + half);
      const used = new UsedNames({ clock, logger: quiet, path });
      await used.start();
      expect([used.size, used.isKnownTo('shop', ALICE, null), used.isKnownTo('pool', ALICE, 'key')]).toEqual([
        3,
        true,
        true,
      ]);
      used.used('shop', ALICE, null);
      await used.stop();
      expect(readFileSync(path, 'utf8').split('\n')[0]).toBe(EARLIER.USED_NAMES.split('\n')[0]);
    });
  },
);

it('an upgrade from version 0.1.0 reads names.json and writes the same bytes', async () => {
  const file = join(folder.path, 'names.json');
  writeFileSync(file, EARLIER.NAMES);
  const names = new StandaloneNamesFile({ clock, logger: quiet, dataDir: folder.path, rows: () => rows });
  const rows = await names.read(AT);
  expect(rows).toMatchObject([
    { kind: 'subdomain', label: 'shop', ownership: { kind: 'held', ownerId: 'alice', lastUsedAt: AT } },
    {
      kind: 'tcp',
      label: '20001',
      ownership: { kind: 'released', ownerId: 'bob', releasedAt: AT + 1, isAssigned: true },
    },
  ]);
  names.changed();
  await names.close();
  expect(readFileSync(file, 'utf8')).toBe(EARLIER.NAMES.replace('"in_use":true', '"in_use":false'));
  expect(readdirSync(folder.path)).toEqual(['names.json']);
});
