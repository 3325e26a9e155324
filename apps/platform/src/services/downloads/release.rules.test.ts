import { describe, expect, it } from 'vitest';
import { clientTarball, hasExecutable, parseManifest, parseSums, problemOfSums, sumsByName } from './release.rules.ts';

const HASH = 'a'.repeat(64);
const file = (path: string, more: object = {}) => ({ path, bytes: 1, sha256: HASH, ...more });
const manifest = (files: unknown, more: object = {}): string =>
  JSON.stringify({ version: '1.2.3', commit: 'abc', node: {}, files, ...more });
const release = (...paths: string[]) => parseManifest(manifest(paths.map((path) => file(path))));

describe('manifest.json', () => {
  it('names the files that the server hands out: executables, npm, packages and license texts', () => {
    const found = release(
      ...['NOTICES.txt', 'npm/hatchway-1.2.3.tgz', 'helm/hatchway-1.2.3.tgz', 'container/server.tar'],
      ...['executables/tunnel-linux-x64', 'packages/hatchway_1.2.3~rc1_amd64.deb', 'SHA256SUMS', 'npm/manifest.json'],
    );
    expect(found.files.map(({ name }) => name)).toEqual([
      ...['NOTICES.txt', 'hatchway-1.2.3.tgz', 'tunnel-linux-x64', 'hatchway_1.2.3~rc1_amd64.deb'],
    ]);
  });

  it.each([
    ['../x'],
    ['/etc/passwd'],
    ['npm/../../x'],
    ['npm//x'],
    ['npm/.hidden'],
    ['npm\\x'],
    ['npm/x y'],
    ['C:/x'],
    ['npm/x\n'],
    ['x'.repeat(201)],
    [''],
    [7],
  ])('rejects the path %j', (path) => {
    expect(() => parseManifest(manifest([{ ...file('a'), path }]))).toThrow('files[0] has no valid path');
  });

  it.each([
    [{ bytes: -1 }, 'size'],
    [{ bytes: 1.5 }, 'size'],
    [{ bytes: '1' }, 'size'],
    [{ sha256: HASH.toUpperCase() }, 'sha256'],
    [{ sha256: 'a' }, 'sha256'],
  ])('rejects a file with %j', (more, problem) => {
    expect(() => parseManifest(manifest([file('a', more)]))).toThrow(`files[0] has no valid ${problem}`);
  });

  it('rejects anything else that is not a manifest', () => {
    for (const text of ['', '[', 'null', '7', '{}']) expect(() => parseManifest(text)).toThrow('manifest.json');
    for (const version of ['1.2', '1.2.3; rm', '$(x)', 7]) {
      expect(() => parseManifest(manifest([], { version }))).toThrow('no valid version');
    }
    expect(() => parseManifest(manifest([], { commit: '`x`' }))).toThrow('no valid commit');
    expect(() => parseManifest(manifest([null]))).toThrow('files[0]');
    expect(() => parseManifest(manifest(Array.from({ length: 501 }, (_, index) => file(`f${index}`))))).toThrow('500');
  });

  it('rejects two files with one name', () => {
    expect(() => release('npm/x.tgz', 'packages/x.tgz')).toThrow('two files with the name x.tgz');
  });
});

describe('SHA256SUMS', () => {
  const found = release('npm/a', 'executables/b');
  const sums = (...lines: string[]) => parseSums(`${lines.join('\n')}\n`);

  it('is read in the forms that sha256sum writes', () => {
    expect(sums(`${HASH}  npm/a`, `${HASH} *executables/b\r`, 'nonsense', `${HASH} c`)).toEqual(
      new Map([
        ['npm/a', HASH],
        ['executables/b', HASH],
      ]),
    );
  });

  it('confirms a manifest whose files have the same checksums', () => {
    expect(problemOfSums(found, sums(`${HASH}  npm/a`, `${HASH}  executables/b`), HASH)).toBeNull();
  });

  it('does not confirm missing or different checksums, another manifest, or a file that is too large', () => {
    const other = 'b'.repeat(64);
    expect(problemOfSums(found, sums(`${HASH}  npm/a`), HASH)).toContain('no checksum of executables/b');
    expect(problemOfSums(found, sums(`${HASH}  npm/a`, `${other}  executables/b`), HASH)).toContain('different');
    expect(problemOfSums(found, sums(`${other}  manifest.json`), HASH)).toContain('manifest.json does not match');
    const large = parseManifest(manifest([file('npm/a', { bytes: 2 ** 40 })]));
    expect(problemOfSums(large, sums(`${HASH}  npm/a`), HASH)).toContain('larger than');
  });

  it('is served with the names below /downloads/', () => {
    expect(sumsByName(found)).toBe(`${HASH}  a\n${HASH}  b\n`);
  });
});

it('the tarball of the client is found with and without a scope', () => {
  expect(clientTarball(release('npm/hatchway-client-1.2.3.tgz', 'npm/hatchway-1.2.3.tgz'))?.name).toBe(
    'hatchway-1.2.3.tgz',
  );
  expect(clientTarball(release('npm/acme-hatchway-1.2.3.tgz'))?.name).toBe('acme-hatchway-1.2.3.tgz');
  expect(clientTarball(release('npm/hatchway-server-1.2.3.tgz', 'npm/xhatchway-1.2.3.tgz'))).toBeUndefined();
});

it('executables are found by their system', () => {
  expect(hasExecutable(release('npm/hatchway-1.2.3.tgz'), 'linux', 'darwin', 'win')).toBe(false);
  expect(hasExecutable(release('executables/tunnel-linux-x64'), 'darwin', 'linux')).toBe(true);
  expect(hasExecutable(release('executables/tunnel-linux-x64'), 'win')).toBe(false);
});
