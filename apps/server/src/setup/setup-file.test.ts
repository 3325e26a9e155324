import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
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

const isRoot = process.getuid?.() === 0;
const NOW = new Date('2030-01-02T03:04:05.678Z');
const DATA_DIR = '/var/lib/tunnel';
const write = (text: string, force = false, owner: { uid: number; gid: number } | null = null): string | null =>
  writeSetupFile(file, text, { force, now: NOW, folderMode: 0o755, owner });
const filesOf = (path: string): string[] => readdirSync(join(folder.path, path)).sort();

it('the written file starts the same server as --public, with the mail server and the data directory', () => {
  const smtp = 'smtp://user:p%22w@mail.test:587';
  const flags = { public: 'tunnels.test', email: 'admin@tunnels.test', smtp };
  write(settingsText(['Settings'], setupTables(flags, DATA_DIR)));
  const loaded = loadConfig({ config: file }, {});
  const started = loadStackConfig(
    { dataDir: DATA_DIR },
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
  write(settingsText(['Settings'], setupTables({}, DATA_DIR)));
  expect(loadConfig({ config: file }, {})).toEqual(loadStackConfig({ dataDir: DATA_DIR }, {}));
});

it.each(['"', "'", '\\', '$(id)`', 'é☃', '\u007f', '\u0001', '#', ' # x', '"""', '\n[server]\n'])(
  'the written file has the exact path of the data directory, whatever its characters: %j',
  (odd) => {
    const dataDir = `/srv/a${odd}b`;
    write(settingsText(['Settings'], setupTables({}, dataDir)));
    expect(loadConfig({ config: file }, {}).data_dir).toBe(dataDir);
  },
);

it('the file is hidden from other users, and every key has a comment', () => {
  expect(write(settingsText(['Settings'], setupTables({ public: 't.test' }, DATA_DIR)))).toBeNull();
  expect(statSync(file).mode & 0o777).toBe(0o640);
  const keys = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.includes(' = '));
  expect(keys.length).toBeGreaterThan(9);
  expect(keys.filter((line) => !line.includes('  # '))).toEqual([]);
});

it.runIf(isRoot)('with a umask of 077, the user of the server can still read the file and enter its folder', () => {
  const before = process.umask(0o077);
  try {
    write('new = 1\n', false, { uid: 0, gid: 4321 });
  } finally {
    process.umask(before);
  }
  const { mode, uid, gid } = statSync(file);
  expect([mode & 0o777, uid, gid]).toEqual([0o640, 0, 4321]);
  expect(statSync(join(folder.path, 'etc')).mode & 0o777).toBe(0o755);
});

it('an existing file is replaced only with --force, and a copy is kept', () => {
  write('[server]\ndomain = "old.test"\n');
  expect(() => write('new = 1\n')).toThrow(/already exists/);
  expect(readFileSync(file, 'utf8')).toContain('old.test');
  expect(write('# new\n', true)).toBe(`${file}.20300102T030405Z`);
  expect(readFileSync(`${file}.20300102T030405Z`, 'utf8')).toContain('old.test');
  expect(readFileSync(file, 'utf8')).toBe('# new\n');
});

it('copies of the same second get different names, and none replaces another', () => {
  write('a = 1\n');
  expect(write('a = 2\n', true)).toBe(`${file}.20300102T030405Z`);
  expect(write('a = 3\n', true)).toBe(`${file}.20300102T030405Z-2`);
  expect(write('a = 4\n', true)).toBe(`${file}.20300102T030405Z-3`);
  const texts = filesOf('etc').map((name) => readFileSync(join(folder.path, 'etc', name), 'utf8'));
  expect(texts).toEqual(['a = 4\n', 'a = 1\n', 'a = 2\n', 'a = 3\n']);
});

it.runIf(isRoot)('a replaced file keeps its owner and group, so that the running service can still read it', () => {
  write('a = 1\n');
  chownSync(file, 0, 4321);
  write('a = 2\n', true, { uid: 0, gid: 0 });
  expect([statSync(file).gid, statSync(file).mode & 0o777]).toEqual([4321, 0o640]);
});

it('a failed write leaves the file as it was, without a copy or a temporary file', () => {
  write('a = 1\n');
  // A text that Node.js refuses to write stands for a full disk.
  expect(() => write({} as string, true)).toThrow(/cannot write/);
  expect(filesOf('etc')).toEqual(['server.toml']);
  expect(readFileSync(file, 'utf8')).toBe('a = 1\n');
});

it('the unchanged file of a package is replaced without a copy', () => {
  write('# Installed with the package.\n\ndata_dir = "/var/lib/tunnel"   # database\n');
  expect(write('[server]\n')).toBeNull();
  expect(filesOf('etc')).toEqual(['server.toml']);
  expect(setsNothing('data_dir = "/srv"\n')).toBe(false);
  expect(setsNothing('[server]\n')).toBe(false);
});

it.each(['link', 'dangling', 'fifo', 'directory', 'null'])(
  'a path that is not a regular file is refused, and stays as it is: %s',
  (kind) => {
    mkdirSync(join(folder.path, 'etc'));
    const target = join(folder.path, 'target.toml');
    if (kind === 'link') writeFileSync(target, 'a = 1\n');
    if (kind === 'link' || kind === 'dangling') symlinkSync(target, file);
    if (kind === 'fifo') expect(spawnSync('mkfifo', [file]).status).toBe(0);
    if (kind === 'directory') mkdirSync(file);
    if (kind === 'null') file = '/dev/null';
    const words = { link: 'a symbolic link', dangling: 'a symbolic link', directory: 'a directory' };
    const reason = (words as Record<string, string>)[kind] ?? 'not a regular file';
    for (const force of [false, true]) expect(() => write('b = 1\n', force)).toThrow(`the path is ${reason}`);
    expect(existsSync(target)).toBe(kind === 'link');
    expect(filesOf('etc')).toEqual(kind === 'null' ? [] : ['server.toml']);
    expect(statSync('/dev/null').isCharacterDevice()).toBe(true);
  },
);

it('a path that cannot be written is named', () => {
  writeFileSync(join(folder.path, 'etc'), '');
  expect(() => write('')).toThrow(/cannot write .*server\.toml: a part of the path is not a directory/);
  file = join(folder.path, 'x'.repeat(300), 'server.toml');
  expect(() => write('')).toThrow(/: the path is too long/);
  file = '/proc/none/deeper/server.toml';
  expect(() => write('')).toThrow(/: the folder cannot be created/);
});

it.runIf(!isRoot)('a folder without permission is named', () => {
  mkdirSync(join(folder.path, 'etc'));
  chmodSync(join(folder.path, 'etc'), 0o500);
  expect(() => write('')).toThrow(/: permission denied/);
});
