import {
  chmodSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { loadClientConfig } from '@tunnel/config/client';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { type EntryKeys, OneLine, saveTunnelEntry } from './entries.ts';

let folder: TemporaryDirectory;
let file: string;

beforeEach(async () => {
  folder = await temporaryDirectory();
  file = join(folder.path, 'config.yml');
});
afterEach(() => folder.close());

const WEB = { proto: 'http', local_port: 3000 } as const;

const save = (name = 'web', entry: EntryKeys = WEB): string => {
  saveTunnelEntry(file, name, entry, { env: {}, home: folder.path });
  return readFileSync(file, 'utf8');
};

const LINES = '  web:\n    proto: http\n    local_port: 3000\n';

test('a policy of rules is saved on one line, and saving the same policy again changes nothing', () => {
  const policy = new OneLine({
    rules: [{ allow_addresses: ['10.0.0.0/8'] }, { auth: { basic: { users_file: '/u: x' } } }],
  });
  const text = save('web', { ...WEB, policy, services: { api: '4000' } });
  expect(text).toContain('    policy: {"rules":[{"allow_addresses":["10.0.0.0/8"]}');
  expect(save('web', { ...WEB, policy, services: { api: '4000' } })).toBe(text);
  expect(() => save('web', { ...WEB, policy: new OneLine({ rules: [] }) })).toThrow("already has a tunnel 'web'");
});

describe('a new tunnel entry in config.yml', () => {
  it.each([
    ['an empty file', '', `tunnels:\n${LINES}`],
    ['a file without tunnels', 'server: a:1 # here\n', `server: a:1 # here\n\ntunnels:\n${LINES}`],
    ['one whose last line has no break', 'server: a:1', `server: a:1\n\ntunnels:\n${LINES}`],
    [
      'an empty table',
      '# top\ntunnels: {} # none yet\nserver: a:1\n',
      `# top\ntunnels: # none yet\n${LINES}server: a:1\n`,
    ],
    [
      'behind the last entry, before what follows',
      'tunnels:\n  db: {proto: tcp, local_port: 1} # one\n  # a word on db\n\n# a word on the server\nserver: a:1\n',
      `tunnels:\n  db: {proto: tcp, local_port: 1} # one\n  # a word on db\n${LINES}\n# a word on the server\nserver: a:1\n`,
    ],
    [
      'as far in as the others',
      'tunnels:\n\n   # first\n   db:\n      proto: tcp\n      local_port: 1\n',
      `tunnels:\n\n   # first\n   db:\n      proto: tcp\n      local_port: 1\n${LINES.replace(/^/gm, ' ').trimEnd()}\n`,
    ],
  ])('goes into the right place: %s', (_what, before, after) => {
    writeFileSync(file, before);
    expect(save()).toBe(after);
  });

  it('creates a missing file with mode 0600', () => {
    expect(save()).toBe(`tunnels:\n${LINES}`);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('uses the line breaks of the file', () => {
    writeFileSync(file, 'server: a:1\r\n');
    expect(save()).toBe(`server: a:1\r\n\r\ntunnels:\r\n${LINES.replaceAll('\n', '\r\n')}`);
  });

  it('leaves every line its line break when the file mixes two kinds', () => {
    const before = 'server: a:1\n';
    const after = '# end\r\nwatch: true\n';
    writeFileSync(file, `${before}tunnels:\r\n  a: { proto: tcp, local_port: 1 }\n${after}`);
    const lines = LINES.replaceAll('\n', '\r\n');
    expect(save()).toBe(`${before}tunnels:\r\n  a: { proto: tcp, local_port: 1 }\n${lines}${after}`);
  });

  it('preserves the mode of the file and a symbolic link', () => {
    const real = join(folder.path, 'real.yml');
    writeFileSync(real, '# mine\n');
    chmodSync(real, 0o640);
    symlinkSync(real, file);
    save();
    expect([lstatSync(file).isSymbolicLink(), statSync(real).mode & 0o777]).toEqual([true, 0o640]);
    expect(readFileSync(real, 'utf8')).toContain('# mine\n');
  });
});

describe('a refused tunnel entry changes no file', () => {
  it.each([
    ['tunnels on one line', 'tunnels: { db: { proto: tcp, local_port: 1 } }\n', 'Add this under `tunnels:` by hand'],
    ['an entry that says something else', 'tunnels:\n  web: { proto: tcp, local_port: 1 }\n', 'already'],
    ['a file that is not good', 'tunnels:\n  db: { proto: tcp }\n', 'local_port'],
  ])('for %s', (_what, before, words) => {
    writeFileSync(file, before);
    expect(() => save()).toThrow(words);
    expect(readFileSync(file, 'utf8')).toBe(before);
    expect(readdirSync(folder.path)).toEqual(['config.yml']);
  });

  it('for an entry that makes the file invalid', () => {
    expect(() => save('web', { proto: 'http' })).toThrow('cannot edit');
    expect(existsSync(file)).toBe(false);
  });
});

test('an existing entry with the same content is left unchanged', () => {
  const before = 'tunnels:\n  web: { local_port: 3000, proto: http, host_header: keep } # mine\n';
  writeFileSync(file, before);
  expect(save()).toBe(before);
});

test('any name and value can be saved and read back, and all previous lines stay', () => {
  const before =
    '# head\nserver: a:1 # mine\ntunnels:\n  # of tunnels\n  db: { proto: tcp, local_port: 1 } # db\n# foot\ninsecure: true\n';
  const text = fc.oneof(
    fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' }),
    fc.constantFrom(
      'true',
      'null',
      '-',
      '- a',
      'a: b',
      '#',
      'a #b',
      '1e3',
      '0x1',
      '!tag',
      '*a',
      '&a',
      '"',
      "'",
      ' a ',
      '~',
    ),
  );
  fc.assert(
    fc.property(text, text, fc.boolean(), (name, value, flag) => {
      fc.pre(name !== 'db' && name !== '__proto__' && !/[\p{Cc}\p{Cs}]/u.test(name) && value.trim() !== '');
      fc.pre([...name].length <= 100 && !/\p{Cs}/u.test(value));
      writeFileSync(file, before);
      const entry = { proto: 'http', local_port: 3000, subdomain: value, capture: flag, health_check: { type: 'tcp' } };
      const after = save(name, entry);
      const { tunnels } = loadClientConfig({ file, env: {} });
      expect(tunnels[name]).toMatchObject(entry);
      expect(Object.keys(tunnels)).toHaveLength(2);
      const kept = new Set(after.split('\n'));
      expect(before.split('\n').filter((line) => !kept.has(line))).toEqual([]);
    }),
    { numRuns: 40 },
  );
});
