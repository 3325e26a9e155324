// The rules of a release: command line, licenses, contents, form of executables, pages, records, versions. tests/system/npm-packages.long.test.ts
// and `npm run try:executables` make a release.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT, run } from './checkout.fixture.ts';

/** Functions of JavaScript modules, which have no declarations. */
type AnyFunction = (...args: readonly unknown[]) => unknown;
const load = async (name: string) =>
  (await import(join(ROOT, `release/lib/${name}.mjs`))) as Record<string, AnyFunction>;

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const { readOptions } = await load('options');
const { checkLicenses, noticesText, packagesInside } = await load('notices');
const { complaintsAbout, pathsOfMachine } = await load('contents');
const { formComplaints } = await load('executable-form');
const { signAdHoc, signatureComplaints } = await load('mach-signature');
const { pagesOf, withoutSection } = await load('readme');
const { manifestOf, tarballName } = await load('manifests');
const { checksumsOf, provenanceOf } = await load('records');
const { formulaOf, scoopManifestOf } = await load('package-managers');
const { changedFiles, changelogWith, checkVersion } = await load('version-changes');
const { pinnedNode } = await load('node-binaries');
const { archiveOf } = await load('helm');

describe('the command line', () => {
  it('makes everything for all systems by default', () => {
    expect(readOptions?.([])).toMatchObject({
      out: 'release/out',
      named: [],
      kinds: ['npm', 'executables', 'packages', 'image', 'helm', 'sbom'],
      targets: ['linux-x64', 'linux-arm64', 'darwin-arm64', 'darwin-x64', 'win-x64'],
    });
    expect(readOptions?.(['--only', 'sbom,npm', '--targets', 'win-x64'])).toMatchObject({
      kinds: ['npm', 'sbom'],
      named: ['npm', 'sbom'],
      targets: ['win-x64'],
    });
  });

  it.each([
    [['--only', 'npm,deb'], '--only does not know "deb"'],
    [['--targets', 'linux-riscv'], '--targets does not know "linux-riscv"'],
    [['--scope', 'acme'], '--scope needs a name such as @acme'],
    [['--base-url', 'ftp://a'], '--base-url needs an http or https address'],
    [['--onyl', 'npm'], "Unknown option '--onyl'"],
    [['npm'], 'Unexpected argument'],
  ])('refuses %j', (args, message) => {
    expect(() => void readOptions?.(args)).toThrow(message);
  });

  it('prints one line and exits with 2, before anything is installed or written', () => {
    const args = ['release/release.mjs', '--only', 'deb', '--out', 'release/out-of-test'];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
    expect([status, stdout, stderr.trim().split('\n')]).toEqual([2, '', [expect.stringMatching(/^release: --only/)]]);
    expect(existsSync(join(ROOT, 'release/out-of-test'))).toBe(false);
  });

  it('replaces no folder that holds something else', () => {
    const args = ['release/release.mjs', '--only', 'sbom', '--out', 'docs'];
    const { status, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
    expect([status, stderr]).toEqual([2, expect.stringContaining('holds no release')]);
  });
});

describe('third-party notices', () => {
  it('list the packages whose code is in a bundle', () => {
    const inputs = (entries: Record<string, number>) => ({
      inputs: Object.fromEntries(Object.entries(entries).map(([path, bytesInOutput]) => [path, { bytesInOutput }])),
    });
    const outputs = {
      'a.js': inputs({ 'node_modules/ws/lib/a.js': 9, 'node_modules/@hono/node/dist/b.js': 1, 'apps/cli/src/c.ts': 5 }),
      'b.js': inputs({
        'node_modules/a/node_modules/b/c.js': 1,
        'node_modules/unused/d.js': 0,
        'node_modules/ws/e.js': 2,
      }),
    };
    expect(packagesInside?.({ outputs })).toEqual([
      'node_modules/@hono/node',
      'node_modules/a/node_modules/b',
      'node_modules/ws',
    ]);
  });

  it('have each package once, with its license', () => {
    const one = { name: 'b', version: '1.0.0', license: 'MIT', texts: ['Permission is granted'] };
    const other = { name: 'a', version: '2.0.0', license: 'ISC', author: 'Ann', texts: [] };
    const text = noticesText?.([one, other, one]) as string;
    expect(text.match(/^(?:a|b) \d.*$/gm)).toEqual(['a 2.0.0', 'b 1.0.0']);
    expect(text).toContain('License: MIT\n\nPermission is granted');
    expect(text).toContain('Author: Ann');
  });

  // The tool that compares licenses is installed by a release.
  it.runIf(existsSync(join(ROOT, 'release/node_modules/spdx-satisfies')))('refuse other licenses', async () => {
    const of = (license: unknown) => checkLicenses?.([{ name: 'a', version: '1.0.0', license }]) as Promise<void>;
    await of('(MIT OR GPL-3.0-only)');
    for (const license of ['GPL-3.0-only', 'MIT AND GPL-3.0-only', 'SEE LICENSE IN a.txt', undefined]) {
      await expect(of(license)).rejects.toThrow('a@1.0.0');
    }
  });
});

describe('the contents of a package', () => {
  const machine = pathsOfMachine?.('/home/ann/work', '/home/ann', '/tmp') as string[];
  const about = (path: string, text = '') => complaintsAbout?.({ path, bytes: Buffer.from(text) }, machine) as string[];

  it('are the files that a program needs', () => {
    for (const path of ['dist/tunnel.cjs', 'bin/tunnel.mjs', 'index.d.ts', 'docs/cli.md'])
      expect(about(path)).toEqual([]);
  });

  it.each([
    'dist/a.js.map',
    'src/a.ts',
    'dist/a.test.js',
    'tests/a.js',
    '.env',
    'a/.env.local',
    '.cache/a',
    'a.tsbuildinfo',
  ])('are not %s', (path) => expect(about(path)).toHaveLength(1));

  it('name no source map and no path of the machine', () => {
    expect(about('a.js', 'x\n//# sourceMappingURL=a.js.map')).toEqual(['a.js: a source map']);
    expect(about('a.js', 'at /home/ann/work/apps/cli/a.ts:1')).toEqual([
      'a.js: the path /home/ann/work/apps of this machine',
    ]);
  });
});

describe('the form of an executable', () => {
  it('must fit the system', () => {
    const elf = Buffer.alloc(128);
    elf.write('\x7fELF\x02', 'latin1');
    elf.writeUInt16LE(183, 18);
    expect(formComplaints?.('linux-x64', elf)).toEqual([
      'built for processor 183',
      'no note NODE_SEA_BLOB',
      'the embedded program is not activated',
    ]);
    expect(formComplaints?.('win-x64', elf)).toContain('no PE file');
    expect(formComplaints?.('darwin-arm64', elf)).toContain('no 64-bit Mach-O file');
  });
});

describe('the signature of a file for macOS', () => {
  /** A header with the segments __TEXT and __LINKEDIT, and two and a half pages. */
  const unsigned = (): Buffer => {
    const file = Buffer.alloc(10_001, 7);
    file.fill(0, 0, 1024);
    file.writeUInt32LE(0xfeedfacf, 0);
    file.writeUInt32LE(2, 16);
    file.writeUInt32LE(144, 20);
    [
      { name: '__TEXT', offset: 0n, size: 8192n },
      { name: '__LINKEDIT', offset: 8192n, size: 1809n },
    ].forEach(({ name, offset, size }, index) => {
      const at = 32 + index * 72;
      file.writeUInt32LE(0x19, at);
      file.writeUInt32LE(72, at + 4);
      file.write(name, at + 8);
      file.writeBigUInt64LE(offset, at + 40);
      file.writeBigUInt64LE(size, at + 48);
    });
    return file;
  };
  const complaints = (file: Buffer): unknown => signatureComplaints?.(file);

  it('fits every page, and ends the file and its last segment', () => {
    expect(complaints(unsigned())).toEqual(['no signature']);
    const signed = signAdHoc?.(unsigned(), 'tunnel') as Buffer;
    expect(complaints(signed)).toEqual([]);
    expect(signed.readUInt32LE(16)).toBe(3);
    expect(8192n + signed.readBigUInt64LE(32 + 72 + 48)).toBe(BigInt(signed.length));
    expect(signed.subarray(1024, 10_001).equals(unsigned().subarray(1024))).toBe(true);
  });

  it('does not fit a file that was changed, cut or made longer', () => {
    const signed = signAdHoc?.(unsigned(), 'tunnel') as Buffer;
    const changed = Buffer.from(signed);
    changed.writeUInt8(8, 5000);
    expect(complaints(changed)).toEqual(['the signature does not fit page 1']);
    for (const other of [signed.subarray(0, -1), Buffer.concat([signed, Buffer.alloc(1)])])
      expect(complaints(other)).toEqual(['the signature does not end the file']);
  });

  it('is refused for a signed file, and for a header without space', () => {
    const signed = signAdHoc?.(unsigned(), 'tunnel') as Buffer;
    expect(() => void signAdHoc?.(signed, 'tunnel')).toThrow('has a signature');
    const full = unsigned();
    full.writeUInt8(1, 180);
    expect(() => void signAdHoc?.(full, 'tunnel')).toThrow('no space');
  });
});

describe('the file of the Helm chart', () => {
  const chart = {
    path: 'hatchway/Chart.yaml',
    bytes: Buffer.from('name: hatchway\nversion: 1.2.3\nappVersion: "1.2.3"\n'),
  };
  const other = { path: 'hatchway/templates/edge.yaml', bytes: Buffer.alloc(512, 'a') };
  const of = (files: readonly object[], version = '1.2.3') =>
    archiveOf?.(files, { version, seconds: 1_700_000_000 }) as Buffer;

  it('depends on the files and the time of the commit only', () => {
    expect(of([other, chart]).equals(of([chart, other]))).toBe(true);
  });

  it('is an archive that tar reads', () => {
    const { stdout } = spawnSync('tar', ['-tvzf', '-'], {
      input: of([other, chart]),
      env: { TZ: 'UTC', PATH: process.env['PATH'] },
    });
    const lines = stdout.toString().trimEnd().split('\n');
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/^-rw-r--r-- .*root.* 50 .* hatchway\/Chart\.yaml$/);
    expect(lines[1]).toMatch(/ 512 .* hatchway\/templates\/edge\.yaml$/);
  });

  it('is refused if the chart has another version than the release', () => {
    expect(() => of([chart], '1.2.4')).toThrow('Chart.yaml has no line version: 1.2.4');
  });
});

it('every target has a pinned Node.js with a hash', () => {
  for (const target of Object.keys(JSON.parse(read('release/node-versions.json')) as object)) {
    expect(pinnedNode?.(target)).toMatchObject({
      version: expect.stringMatching(target.startsWith('linux') ? /^24\./ : /^26\./),
      integrity: expect.stringMatching(/^sha512-/),
    });
  }
});

describe('the pages of a package', () => {
  const text =
    'Read [the page](../../docs/a.md#b), [the code](../../ARCHITECTURE.md) and [more](https://example.com).\n';
  const pages = pagesOf?.({
    path: 'packages/client/README.md',
    text: `${text}\n\`\`\`sh\nrun [x](y.md)\n\`\`\`\n![A picture](../../docs/a.png)\n`,
    read: (path: string) => `${path}: [here](#b), [there](c.md), [back](a.md)\n`,
    rename: (page: string) => page.replaceAll('more', 'MORE'),
  }) as Record<string, string>;

  it('have links that work in the package', () => {
    expect(pages['README.md']).toContain('Read [the page](docs/a.md#b), the code and [MORE](https://example.com).');
    expect(pages['README.md']).toContain('run [x](y.md)');
    expect(pages['README.md']).not.toContain('picture');
    expect(pages['docs/a.md']).toBe('docs/a.md: [here](#b), there, [back](a.md)\n');
    expect(Object.keys(pages)).toEqual(['README.md', 'docs/a.md']);
  });

  it('can leave out a section', () => {
    expect(withoutSection?.('# A\n\n## B\n\nb\n\n## C\n\nc\n', '## B')).toBe('# A\n\n## C\n\nc\n');
    expect(() => void withoutSection?.('# A\n', '## B')).toThrow('no section');
  });

  it('exist for each package', () => {
    for (const name of ['hatchway', 'hatchway-server']) {
      const linked = [...read(`release/readme/${name}.md`).matchAll(/\]\(([\w/-]+\.md)\)/g)].map(
        ([, page = '']) => page,
      );
      expect(linked.length).toBeGreaterThan(3);
      for (const page of linked) expect(existsSync(join(ROOT, page)), page).toBe(true);
    }
  });
});

it('a package.json names no private package, and takes the scope that a release asks for', () => {
  const manifests = Object.fromEntries(
    ['.', 'apps/cli', 'apps/server', 'apps/platform', 'packages/peer'].map((dir) => [
      dir,
      JSON.parse(read(`${dir}/package.json`)) as unknown,
    ]),
  );
  for (const name of ['hatchway', 'hatchway-client', 'hatchway-server']) {
    const text = JSON.stringify(manifestOf?.(name, { manifests, scope: '@acme' }));
    expect(text).toContain(`"name":"@acme/${name}"`);
    expect(text).not.toContain('@tunnel/');
    expect(text).not.toContain('private');
  }
  expect(tarballName?.('@acme/hatchway', '1.2.3')).toBe('acme-hatchway-1.2.3.tgz');
});

describe('the records of a release', () => {
  const files = [{ path: 'npm/a.tgz', bytes: 3, sha256: 'abc' }];

  it('can be checked with sha256sum', () => {
    expect(checksumsOf?.(files)).toBe('abc  npm/a.tgz\n');
  });

  it('have an in-toto statement about the files and the commit', () => {
    expect(provenanceOf?.({ commit: 'c0ffee', files, parameters: {}, builder: {} })).toMatchObject({
      _type: 'https://in-toto.io/Statement/v1',
      subject: [{ name: 'npm/a.tgz', digest: { sha256: 'abc' } }],
      predicate: { buildDefinition: { resolvedDependencies: [{ digest: { gitCommit: 'c0ffee' } }] } },
    });
  });

  it('have a formula and a Scoop manifest for the executables that were made', () => {
    const parts = { version: '1.2.3', baseUrl: 'https://example.com/downloads' };
    const linux = { target: 'linux-x64', name: 'tunnel-linux-x64', sha256: 'a1' };
    const windows = { target: 'win-x64', name: 'tunnel-win-x64.exe', sha256: 'b2' };
    const formula = formulaOf?.({ ...parts, files: [linux, windows] }) as string;
    expect(formula).toContain('url "https://example.com/downloads/tunnel-linux-x64"\n      sha256 "a1"');
    expect(formula).not.toContain('on_macos');
    expect(formulaOf?.({ ...parts, files: [windows] })).toBeNull();
    expect(scoopManifestOf?.({ ...parts, files: [linux] })).toBeNull();
    expect(scoopManifestOf?.({ ...parts, files: [windows] })).toMatchObject({
      architecture: { '64bit': { hash: 'b2' } },
    });
  });
});

describe('a new version', () => {
  it('is higher than the current version', () => {
    checkVersion?.('0.2.0', '0.1.9');
    for (const version of ['0.1.0', '0.0.9', 'v0.2.0', '0.2', '1.0.0-rc.1']) {
      expect(() => void checkVersion?.(version, '0.1.0'), version).toThrow(version);
    }
  });

  it('closes the section of the changelog', () => {
    const text = '# Changelog\n\n## [Unreleased]\n\n### Added\n\n- a\n\n## [0.1.0] - 2026-01-01\n\n- b\n';
    expect(changelogWith?.(text, '0.2.0', '2026-11-18')).toBe(
      '# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-18\n\n### Added\n\n- a\n\n## [0.1.0] - 2026-01-01\n\n- b\n',
    );
    const empty = '# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n- b\n';
    expect(() => void changelogWith?.(empty, '0.2.0', '2026-11-18')).toThrow('no entries');
  });

  it('reaches every package, the lock files, the client and the chart, and nothing else', async () => {
    const files = (await run('git', ['ls-files'])).stdout.trim().split('\n');
    const { version: current } = JSON.parse(read('package.json')) as { version: string };
    // Right after a release the section [Unreleased] is empty.
    const withEntry = (file: string): string =>
      file === 'CHANGELOG.md' ? read(file).replace('## [Unreleased]\n', '## [Unreleased]\n\n- an entry\n') : read(file);
    const changes = changedFiles?.({
      files,
      read: withEntry,
      current,
      version: '9.8.7',
      commit: 'c0ffee',
      date: '2026-11-18',
    }) as Record<string, string>;
    const manifests = files.filter((file) => /^(?:(?:packages|apps)\/[^/]+|release|\.)?\/?package\.json$/.test(file));
    const locks = ['package-lock.json', 'release/package-lock.json', 'release/previous.json'];
    const chart = 'deploy/helm/hatchway/Chart.yaml';
    const images = 'deploy/compose/.env.example';
    const others = [...locks, 'packages/client/src/options.ts', 'CHANGELOG.md', chart, images];
    expect(Object.keys(changes).sort()).toEqual([...manifests, ...others].sort());
    expect(changes[images]).toContain('\nHATCHWAY_VERSION=9.8.7\n');
    expect(changes[chart]?.match(/^(?:v|appV)ersion.*$/gm)).toEqual(['version: 9.8.7', 'appVersion: "9.8.7"']);
    expect(JSON.parse(changes['release/previous.json'] ?? '')).toEqual({ version: current, commit: 'c0ffee' });
    for (const file of [...manifests, 'package-lock.json', 'release/package-lock.json']) {
      const before = read(file).split('\n');
      const changed = (changes[file] ?? '').split('\n').filter((line, at) => line !== before[at]);
      expect(changed.length, file).toBeGreaterThan(0);
      expect(
        changed.every((line) => line.includes('"9.8.7"')),
        file,
      ).toBe(true);
    }
  });
});
