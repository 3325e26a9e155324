import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { publicOverrides } from '../commands/public-flags.ts';
import { setupTables } from '../commands/setup-command.ts';
import { loadConfig, loadStackConfig } from '../commands/shared.ts';
import { setsNothing, settingsText } from './settings-text.rules.ts';
import { writeSetupFile } from './setup-file.ts';

let folder: TemporaryDirectory;
let file: string;
beforeEach(async () => {
  folder = await temporaryDirectory();
  file = join(folder.path, 'etc', 'server.toml');
});
afterEach(() => folder.close());

const NOW = new Date('2030-01-02T03:04:05.678Z');
const write = (text: string, force = false): string | null =>
  writeSetupFile(file, text, { force, now: NOW, gid: null });

it('the written file starts the same server as --public, with the mail server and the data directory', () => {
  const smtp = 'smtp://user:p%22w@mail.test:587';
  const flags = { public: 'tunnels.test', email: 'admin@tunnels.test', smtp };
  write(settingsText(['Settings'], setupTables(flags, '/var/lib/tunnel')));
  const loaded = loadConfig({ config: file }, {});
  const started = loadStackConfig(
    { dataDir: '/var/lib/tunnel' },
    {},
    publicOverrides({ public: flags.public, acmeEmail: flags.email }),
  );
  const { mail, ...platform } = loaded.platform;
  expect({ ...loaded, platform: { ...platform, mail: started.platform.mail } }).toEqual(started);
  expect([mail.transport, mail.smtp_url.reveal(), mail.from]).toEqual([
    'smtp',
    smtp,
    'Hatchway <no-reply@tunnels.test>',
  ]);
});

it('without --public, the written file is a server for this machine', () => {
  write(settingsText(['Settings'], setupTables({}, null)));
  expect(loadConfig({ config: file }, {})).toEqual(loadStackConfig({}, {}));
});

it('the file is hidden from other users, and every key has a comment', () => {
  expect(write(settingsText(['Settings'], setupTables({ public: 't.test' }, '/var/lib/tunnel')))).toBeNull();
  expect(statSync(file).mode & 0o777).toBe(0o640);
  const keys = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.includes(' = '));
  expect(keys.length).toBeGreaterThan(9);
  expect(keys.filter((line) => !line.includes('  # '))).toEqual([]);
});

it('an existing file is replaced only with --force, and a copy is kept', () => {
  write('[server]\ndomain = "old.test"\n');
  expect(() => write('new = 1\n')).toThrow(/already exists/);
  expect(readFileSync(file, 'utf8')).toContain('old.test');
  expect(write('# new\n', true)).toBe(`${file}.20300102T030405Z`);
  expect(readFileSync(`${file}.20300102T030405Z`, 'utf8')).toContain('old.test');
  expect(readFileSync(file, 'utf8')).toBe('# new\n');
});

it('the unchanged file of a package is replaced without a copy', () => {
  write('# Installed with the package.\n\ndata_dir = "/var/lib/tunnel"   # database\n');
  expect(write('[server]\n')).toBeNull();
  expect(readdirSync(join(folder.path, 'etc'))).toEqual(['server.toml']);
  expect(setsNothing('data_dir = "/srv"\n')).toBe(false);
  expect(setsNothing('[server]\n')).toBe(false);
});

it('a path that cannot be written is named', () => {
  writeFileSync(join(folder.path, 'etc'), '');
  expect(() => write('')).toThrow(/cannot write .*server\.toml: .*/);
});
