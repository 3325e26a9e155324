import { NEW_CERTIFICATE } from '@tunnel/certificates/life';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { certificateStoreConformance } from '../../../../../packages/certificates/src/acme/keeper/certificate-store.conformance.ts';
import { createTestDatabase, type TestDatabase } from '../../db/test-database.fixture.ts';
import { readChanges } from '../edges/read-changes.ts';
import { PostgresCertificateStore } from './postgres-certificate-store.ts';

const DIRECTORY = 'https://ca.example/directory';
const NOW = Date.UTC(2030, 0, 1);
const LEASE = 60_000;

let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabase();
});

afterEach(() => database.close());

const open = (directory = DIRECTORY): PostgresCertificateStore =>
  new PostgresCertificateStore({ db: database.db, directory });

certificateStoreConformance(async () => ({ store: open(), reopen: async () => open() }));

const announced = async (): Promise<string[]> => {
  const { changes } = await readChanges(database.db, { after: 0, limit: 100, now: NOW });
  return changes.flatMap(({ change }) => (change.kind === 'certificate-changed' ? [change.certificate_id] : []));
};

const claimed = async (store: PostgresCertificateStore) => {
  const claim = await store.claim('one', NOW, LEASE);
  if (claim === null) throw new Error('nothing was due');
  return claim;
};

it('each certificate authority has separate rows and accounts', async () => {
  const { id } = await open().want(['a.example']);
  await open().saveAccount({ key: 'sealed', url: null, email: '' }, null);
  const other = open('https://staging.example/directory');
  expect([await other.list(), await other.account(), await other.get(id)]).toEqual([[], null, null]);
  await other.forget(id);
  expect(await open().get(id)).not.toBeNull();
});

it('edges are notified if a certificate is issued, failed or forgotten, but not of each step', async () => {
  const store = open();
  const { id } = await store.want(['a.example']);
  const claim = await claimed(store);
  await store.extend(claim, NOW, LEASE);
  await store.save(claim, { life: { ...NEW_CERTIFICATE, refusals: 1 } });
  expect(await announced()).toEqual([]);
  await store.save(claim, { life: { ...NEW_CERTIFICATE, lastError: 'refused' } });
  expect(await announced()).toEqual([id]);
  const certificate = { chain: 'c', issuer: 'i', serial: 's', notBefore: 1, notAfter: 2, renewalId: null, key: 'k' };
  await store.save(claim, { certificate });
  await store.forget(id);
  await store.forget(id);
  expect(await announced()).toEqual([id, id, id]);
});

it('a suspended certificate is kept but cannot be claimed', async () => {
  const store = open();
  const { id } = await store.want(['a.example']);
  await store.setKeeping(id, { accountId: null, isSuspended: true });
  expect(await store.claim('one', NOW, LEASE)).toBeNull();
  expect(await store.kept(id)).toMatchObject({ isSuspended: true });
  await store.setKeeping(id, { accountId: null, isSuspended: false });
  expect(await store.claim('one', NOW, LEASE)).not.toBeNull();
});

it('concurrent keepers claim a certificate only once', async () => {
  const store = open();
  for (let index = 0; index < 20; index += 1) await store.want([`n${index}.example`]);
  const claims = await Promise.all(Array.from({ length: 40 }, (_, index) => store.claim(`k${index}`, NOW, LEASE)));
  const names = claims.flatMap((claim) => claim?.record.names ?? []);
  expect(new Set(names).size).toBe(names.length);
  // Claims the rest: a concurrent claim can return null if it only met rows locked by other claims.
  for (
    let claim = await store.claim('last', NOW, LEASE);
    claim !== null;
    claim = await store.claim('last', NOW, LEASE)
  ) {
    names.push(...claim.record.names);
  }
  expect([new Set(names).size, names.length]).toEqual([20, 20]);
});

it('pages of certificates contain each certificate once', async () => {
  const store = open();
  for (let index = 0; index < 5; index += 1) await store.want([`n${index}.example`]);
  const first = await store.page(null, 3);
  const rest = await store.page(first.at(-1)?.id ?? '', 3);
  expect(new Set([...first, ...rest].map(({ id }) => id)).size).toBe(5);
  expect([first.length, rest.length, first[0]?.accountId]).toEqual([3, 2, null]);
});

it('a certificate claim uses an index', async () => {
  const { db, pool } = database;
  await db
    .insertInto('certificates')
    .values(
      Array.from({ length: 5000 }, (_, index) => ({
        directory: DIRECTORY,
        names: `n${index}.example`,
        has_wildcard: false,
        life: JSON.stringify(NEW_CERTIFICATE),
        due_at: new Date(NOW + index),
      })),
    )
    .execute();
  await pool.query('analyze certificates');
  const { rows } = await pool.query<{ 'QUERY PLAN': string }>(
    `explain select id from certificates where directory = '${DIRECTORY}' and not suspended and due_at <= '2030-01-01'
     and (locked_until is null or locked_until <= '2030-01-01') and (true or not has_wildcard)
     order by due_at limit 1 for update skip locked`,
  );
  expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('certificates_due');
});
