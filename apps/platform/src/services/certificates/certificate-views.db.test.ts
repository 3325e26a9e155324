import { NEW_CERTIFICATE } from '@tunnel/certificates/life';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../db/test-database.fixture.ts';
import { loadCertificateViews } from './certificate-views.ts';

const NOW = Date.UTC(2030, 0, 1);
const DIRECTORY = 'https://ca.example/directory';
const DAY_MS = 86_400_000;

let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabase();
  await database.db.insertInto('acme_authority').values({ directory: DIRECTORY }).execute();
});

afterEach(() => database.close());

const insert = async (names: string, directory: string, issued: boolean): Promise<void> => {
  const dates = { notBefore: NOW - DAY_MS, notAfter: NOW + 89 * DAY_MS };
  const life = issued ? { ...NEW_CERTIFICATE, issued: dates, renewAt: NOW + 59 * DAY_MS } : NEW_CERTIFICATE;
  await database.db
    .insertInto('certificates')
    .values({
      directory,
      names,
      has_wildcard: false,
      life: JSON.stringify(life),
      due_at: new Date(NOW),
      certificate: issued ? JSON.stringify({ issuer: 'Test', key: 'sealed' }) : null,
    })
    .execute();
};

it('a name shows the certificate of the current authority', async () => {
  await insert('shop.example', DIRECTORY, true);
  await insert('shop.example', 'https://staging.example/directory', false);
  const views = await loadCertificateViews(database.db, ['shop.example', 'new.example'], NOW);
  expect([...views]).toEqual([
    [
      'shop.example',
      {
        state: 'valid',
        issuer: 'Test',
        not_before: '2029-12-31T00:00:00.000Z',
        not_after: '2030-03-31T00:00:00.000Z',
        renew_at: '2030-03-01T00:00:00.000Z',
        last_error: null,
      },
    ],
    [
      'new.example',
      { state: 'none', issuer: null, not_before: null, not_after: null, renew_at: null, last_error: null },
    ],
  ]);
});

it('an empty list of names gives no certificate views', async () => {
  expect((await loadCertificateViews(database.db, [], NOW)).size).toBe(0);
});
