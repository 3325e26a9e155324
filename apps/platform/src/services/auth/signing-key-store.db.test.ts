// Signing keys as stored in the database, and the startup errors for a wrong master key.
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Fault } from '@tunnel/errors';
import { systemClock } from '@tunnel/runtime';
import { eventually, FakeClock } from '@tunnel/testkit';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { masterKeySource } from '../../db/master-key.ts';
import { createTestDatabase, type TestDatabase } from '../../db/test-database.fixture.ts';
import {
  listSigningKeys,
  openPrivateKey,
  prepareSigningKeys,
  rotateSigningKeys,
  signingKeyRows,
} from './signing-key-store.ts';
import { SIGNING_KEYS_KNOWN_MS, SIGNING_KEYS_LOOK_MS, SigningKeys } from './signing-keys.ts';

let database: TestDatabase;
let dataDir: string;
beforeEach(async () => {
  database = await createTestDatabase();
  dataDir = mkdtempSync(join(tmpdir(), 'tunnel-keys-'));
});
afterEach(async () => {
  await database.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const clock = systemClock;
const operator = { kind: 'operator', name: 'root' } as const;
const source = (secret_key_file = '') => masterKeySource({ secret_key_file }, dataDir);
const prepare = (at = source()) => prepareSigningKeys(database.db, at, clock.now());
const rotate = (discardOld = false, at = source()) =>
  rotateSigningKeys({ db: database.db, clock }, operator, at, { discardOld });
const rows = () => signingKeyRows(database.db, clock.now());

/** Returns every row of every table, as a database dump would. */
const dump = async (): Promise<string> => {
  const tables = await sql<{ name: string }>`
    select quote_ident(table_name) as name from information_schema.tables where table_schema = 'public'
  `.execute(database.db);
  const texts = await Promise.all(
    tables.rows.map(async ({ name }) =>
      JSON.stringify((await sql`select * from ${sql.raw(name)}`.execute(database.db)).rows),
    ),
  );
  return texts.join('\n');
};

/** Stores an unencrypted signing key, as an earlier version did. */
const insertInClear = async (kid: string): Promise<JWK> => {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  const jwk = await exportJWK(privateKey);
  const row = { kid, public_key: JSON.stringify(await exportJWK(publicKey)), private_key: JSON.stringify(jwk) };
  await database.db.insertInto('signing_keys').values(row).execute();
  return jwk;
};

describe('preparing signing keys', () => {
  it('creates a private master key file once, and the first key encrypted with it', async () => {
    await prepare();
    const file = join(dataDir, 'master-key');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const secret = readFileSync(file, 'utf8');
    const masterKey = await prepare();
    expect(readFileSync(file, 'utf8')).toBe(secret);
    const [key, ...more] = await rows();
    expect(more).toEqual([]);
    expect(openPrivateKey(masterKey, key!)).toMatchObject({ kty: 'OKP', d: expect.any(String) });
  });

  it('encrypts previously unencrypted keys, so that a dump contains no private key', async () => {
    const jwk = await insertInClear('sig_old');
    const masterKey = await prepare();
    const [key, ...more] = await rows();
    expect([key?.kid, more]).toEqual(['sig_old', []]);
    expect(openPrivateKey(masterKey, key!)).toEqual(jwk);
    const text = await dump();
    expect(text).toContain('sig_old');
    expect(text).not.toContain(jwk.d);
    expect(text).not.toMatch(/\\?"d\\?":/);
    // No deleted row with the private key remains in the table's file either.
    const { rows: pages } = await sql<{ found: number }>`select pg_relation_size('signing_keys')::int as found`.execute(
      database.db,
    );
    expect(pages[0]?.found).toBe(8192);
  });

  it('fails for a wrong or missing master key, naming the file and the remedy', async () => {
    await prepare();
    const file = join(dataDir, 'master-key');
    writeFileSync(file, `${'x'.repeat(43)}\n`);
    await expect(prepare()).rejects.toMatchObject({
      code: 'CONFIG_SECRET_KEY',
      message: `the key file ${file} cannot be used: the secrets in the database were encrypted with a different key`,
      next: expect.stringContaining('signing-keys rotate --discard-old'),
    });
    rmSync(file);
    await expect(prepare()).rejects.toThrow(`${file} cannot be used: the file does not exist`);
    expect(existsSync(file)).toBe(false);
    writeFileSync(file, 'short\n');
    await expect(prepare()).rejects.toThrow(`${file} cannot be used: the file has fewer than 32 characters`);
  });

  it('uses the configured key file and never creates it', async () => {
    const given = join(dataDir, 'elsewhere');
    await expect(prepare(source(given))).rejects.toThrow(`${given} cannot be used: the file does not exist`);
    writeFileSync(given, `${'k'.repeat(64)}\n`);
    await prepare(source(given));
    expect(existsSync(join(dataDir, 'master-key'))).toBe(false);
    // A second platform with a different master key is refused.
    await expect(prepare()).rejects.toMatchObject({ code: 'CONFIG_SECRET_KEY' });
  });

  it('rejects a key file with bytes that are not text', async () => {
    const given = join(dataDir, 'bytes');
    const reason = `${given} cannot be used: the file is not text`;
    for (const bytes of [Buffer.alloc(64, 0xe9), Buffer.alloc(64, 0x07), Buffer.from(`${'k'.repeat(64)}\0`)]) {
      writeFileSync(given, bytes);
      await expect(prepare(source(given))).rejects.toThrow(reason);
    }
    expect(await rows()).toEqual([]);
  });

  it('detects a key file readable by every user', async () => {
    expect((await prepare()).isOpenToAll).toBe(false);
    chmodSync(join(dataDir, 'master-key'), 0o644);
    expect((await prepare()).isOpenToAll).toBe(true);
  });

  it('detects keys swapped in the table', async () => {
    await prepare();
    const [key] = await rows();
    await database.db.updateTable('signing_keys').set({ kid: 'sig_other' }).where('kid', '=', key!.kid).execute();
    await expect(prepare()).rejects.toMatchObject({ code: 'CONFIG_SECRET_KEY' });
  });
});

describe('rotating signing keys', () => {
  it('leaves one signing key, removes the private parts of old keys, and writes an audit entry', async () => {
    await prepare();
    const [first] = await rows();
    const second = await rotate();
    const third = await rotate();
    const all = await rows();
    expect(all.map(({ kid }) => kid)).toEqual([third, second, first!.kid]);
    expect(all.map(({ private_key }) => private_key === null)).toEqual([false, true, true]);
    const listed = await listSigningKeys({ db: database.db, clock });
    expect(listed.map(({ verifiesUntil }) => verifiesUntil === null)).toEqual([true, false, false]);
    const audit = await database.db.selectFrom('audit_log').select(['actor', 'action']).execute();
    expect(audit).toEqual([2, 1].map(() => ({ actor: 'operator:root', action: 'signing_keys.rotated' })));
  });

  it('is rejected with a different master key, and changes nothing', async () => {
    await prepare();
    const before = await rows();
    writeFileSync(join(dataDir, 'other'), 'o'.repeat(43));
    await expect(rotate(false, source(join(dataDir, 'other')))).rejects.toMatchObject({ code: 'CONFIG_SECRET_KEY' });
    expect(await rows()).toEqual(before);
  });

  it('with --discard-old needs no old master key, and recreates a lost one', async () => {
    await prepare();
    rmSync(join(dataDir, 'master-key'));
    await expect(rotate()).rejects.toMatchObject({ code: 'CONFIG_SECRET_KEY' });
    const kid = await rotate(true);
    expect((await rows()).map((row) => row.kid)).toEqual([kid]);
    await prepare();
  });

  it('under a new master key takes effect in a running platform', async () => {
    const held = await prepare();
    const fake = new FakeClock();
    const keys = new SigningKeys({ db: database.db, clock: fake, masterKey: () => held });
    await keys.current();
    rmSync(join(dataDir, 'master-key'));
    const kid = await rotate(true);
    await fake.advance(SIGNING_KEYS_KNOWN_MS);
    expect((await keys.current()).kid).toBe(kid);
    expect((await keys.published()).keys.map((key) => key.kid)).toEqual([kid]);
  });

  it('does not affect unknown key IDs, which are looked up only once', async () => {
    const held = await prepare();
    const fake = new FakeClock();
    const keys = new SigningKeys({ db: database.db, clock: fake, masterKey: () => held });
    await keys.current();
    expect(keys.isUnknown('of-nobody')).toBe(true);
    const first = keys.find('of-nobody');
    await eventually(() => expect(fake.pendingTimers).toBe(1));
    await fake.advance(SIGNING_KEYS_LOOK_MS);
    expect(await first).toBeUndefined();
    // Resolves immediately, without a further wait of a second.
    expect(await keys.find('of-nobody')).toBeUndefined();
  });

  it('with an unreadable key also ends the old keys, with an error that does not name the file', async () => {
    const held = await prepare();
    const fake = new FakeClock();
    const keys = new SigningKeys({ db: database.db, clock: fake, masterKey: () => held });
    await keys.current();
    rmSync(join(dataDir, 'master-key'));
    await rotate(true);
    rmSync(join(dataDir, 'master-key'));
    await fake.advance(SIGNING_KEYS_KNOWN_MS);
    for (let tries = 0; tries < 2; tries += 1) {
      const refused = await keys.current().catch((error: unknown) => error);
      expect(refused).toEqual(new Error('cannot decrypt the signing key for access tokens'));
      expect(refused).not.toBeInstanceOf(Fault);
    }
  });

  it('concurrently leaves one signing key', async () => {
    await prepare();
    await Promise.all([rotate(), rotate(), rotate()]);
    expect((await rows()).filter(({ retired_at }) => retired_at === null)).toHaveLength(1);
  });
});
