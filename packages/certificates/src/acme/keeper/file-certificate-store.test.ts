import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { certificateStoreConformance } from './certificate-store.conformance.ts';
import { FileCertificateStore } from './file-certificate-store.ts';

const DIRECTORY = 'https://ca.example/directory';

let folder: TemporaryDirectory;

beforeEach(async () => {
  folder = await temporaryDirectory();
});

afterEach(() => folder.close());

const open = (directory = DIRECTORY): FileCertificateStore =>
  new FileCertificateStore(join(folder.path, 'certificates'), directory);

certificateStoreConformance(async () => ({ store: open(), reopen: async () => open() }));

const files = (): string[] =>
  readdirSync(folder.path, { recursive: true, encoding: 'utf8' }).map((name) => join(folder.path, name));

it('each authority has its own folder, so that its account is not used with another authority', async () => {
  await open().want(['a.example']);
  await open().saveAccount({ key: 'sealed', url: null, email: '' }, null);
  const other = open('https://staging.example/directory');
  expect([await other.list(), await other.account()]).toEqual([[], null]);
});

it('certificate files and folders are accessible only to their owner', async () => {
  await open().want(['a.example']);
  await open().saveAccount({ key: 'sealed', url: null, email: '' }, null);
  expect(files().filter((path) => (statSync(path).mode & 0o077) !== 0)).toEqual([]);
});

it('a failed write leaves the record unchanged in memory', async () => {
  const store = open();
  const { id } = await store.want(['a.example']);
  const claim = await store.claim('one', Date.now(), 60_000);
  if (claim === null) throw new Error('nothing was due');
  rmSync(join(folder.path, 'certificates'), { recursive: true });
  await expect(store.save(claim, { orderKey: 'new' })).rejects.toThrow('ENOENT');
  expect((await store.get(id))?.orderKey).toBeNull();
});

it('files left half-written by a killed process are deleted, and an unreadable file is named in the error', async () => {
  await open().want(['a.example']);
  const [record = ''] = files().filter((path) => path.endsWith('.json'));
  writeFileSync(`${record}.x.new`, '{"half');
  expect(await open().list()).toHaveLength(1);
  expect(files().filter((path) => path.endsWith('.new'))).toEqual([]);
  writeFileSync(record, '{"half');
  expect(() => open()).toThrow(record);
});
