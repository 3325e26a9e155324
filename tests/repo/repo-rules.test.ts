// Rules about the repository that no other tool checks.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { isErrorCode } from '@tunnel/errors';
import { expect, it } from 'vitest';
import { EXAMPLE_PAGES, ROOT, run } from './checkout.fixture.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const lineCount = (path: string): number => read(path).trimEnd().split('\n').length;
const tracked = async (): Promise<string[]> => (await run('git', ['ls-files'])).stdout.trim().split('\n');

it('the README has at most 90 lines, and its title is the product name', () => {
  expect(lineCount('README.md')).toBeLessThanOrEqual(90);
  expect(read('README.md')).toMatch(/^# Hatchway\n/);
});

it.each(['package-lock.json', 'release/package-lock.json'])('%s contains no download URLs', (file) => {
  const lock = JSON.parse(read(file)) as { packages: Record<string, { resolved?: string }> };
  const fetched = Object.entries(lock.packages).filter(([, { resolved }]) => resolved?.includes('://'));
  expect(fetched).toEqual([]);
});

it('no file names the npm registry host', async () => {
  const host = ['registry', 'npmjs', 'org'].join('.');
  const { stdout } = await run('git', ['grep', '-l', '-F', host]);
  expect(stdout).toBe('');
});

it("all packages and the client's user agent have the version of the root package.json", async () => {
  const { version } = JSON.parse(read('package.json')) as { version: string };
  const manifests = (await tracked()).filter((file) =>
    /^(?:(?:packages|apps)\/[^/]+|release)\/package\.json$/.test(file),
  );
  expect(manifests.length).toBeGreaterThan(10);
  for (const path of manifests) expect(JSON.parse(read(path)), path).toMatchObject({ version });
  expect(read('packages/client/src/options.ts')).toContain(`tunnel-client/${version} `);
});

it('npm scripts replace their shell with exec, so that signals reach the program', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  for (const name of ['start', 'test', 'test:nodes', 'test:postgres', 'verify', 'build'])
    expect(scripts[name]).toMatch(/ && exec node \S+/);
});

it('scripts that are run directly have the mode 0755', () => {
  for (const path of ['.ci/run', 'apps/cli/bin/tunnel.mjs', 'apps/server/bin/tunnel-server.mjs']) {
    expect(statSync(join(ROOT, path)).mode & 0o777, path).toBe(0o755);
  }
});

it('entry files stay small: index.ts only re-exports, and main.ts has at most 60 lines', async () => {
  const files = await tracked();
  for (const path of files.filter((file) => /^(packages|apps)\/[^/]+\/src\/index\.ts$/.test(file))) {
    const code = read(path)
      .replace(/^\s*\/\/.*$/gm, '')
      .replace(/export (type )?(\*|\{[^}]*\})( as \w+)? from '[^']+';/g, '');
    expect(code.trim(), `${path} does more than re-export`).toBe('');
  }
  for (const path of files.filter((file) => /^apps\/[^/]+\/src\/main\.ts$/.test(file))) {
    expect(lineCount(path), path).toBeLessThanOrEqual(60);
  }
});

it('test helpers have the suffix .fixture, .rows or -setup', async () => {
  const files = (await tracked()).filter((file) => /^tests\/(?!tools\/).*\.ts$/.test(file));
  expect(files.filter((file) => !/(?:\.test|\.fixture|\.rows|-setup)\.ts$/.test(file))).toEqual([]);
});

it('tests/unsteady.json refers to existing test files and gives a reason for each test', () => {
  for (const [test, reason] of Object.entries(JSON.parse(read('tests/unsteady.json')) as Record<string, unknown>)) {
    expect(existsSync(join(ROOT, test.split(' > ', 1)[0] ?? '')), test).toBe(true);
    expect(reason, test).toMatch(/\w+ \w+/);
  }
});

type Table = Record<string, string[]>;

/** Returns rows of ARCHITECTURE.md: the name in backticks, and the names in the second column. */
const documented = (rows: string, name: RegExp): Table =>
  Object.fromEntries(
    rows.split('\n').flatMap((row) => {
      const [, first = '', second = ''] = row.split('|');
      const found = name.exec(first.trim())?.[1];
      return found === undefined
        ? []
        : [[found, [...second.matchAll(/`([^`]+)`/g)].map((match) => match[1] as string)]];
    }),
  );

it('the import tables in ARCHITECTURE.md match the rules that are enforced', async () => {
  const rules = (await import(join(ROOT, 'scripts/lib/import-rules.mjs'))) as {
    MAY_IMPORT: Table;
    FOLDER_MAY_IMPORT: Record<string, Table>;
  };
  const page = read('ARCHITECTURE.md');
  expect(documented(page, /^`@tunnel\/([\w-]+)`$/)).toEqual(rules.MAY_IMPORT);
  const tables = [...page.matchAll(/^\| Part of `\w+\/([\w-]+)\/src` \|.*\n\|[-|]+\n((?:\|.*\n)+)/gm)];
  const folders = tables.map(([, workspace = '', rows = '']) => [workspace, documented(rows, /^`(.+?)\/?`$/)] as const);
  // The page has no table for a workspace without folders, so its empty table is left out.
  const enforced = Object.entries(rules.FOLDER_MAY_IMPORT).filter(([, rows]) => Object.keys(rows).length > 0);
  expect(Object.fromEntries(folders)).toEqual(Object.fromEntries(enforced));
});

it('docs/benchmarks-peers.md and .svg match the figures in docs/benchmarks-peers.json', async () => {
  const record: unknown = JSON.parse(read('docs/benchmarks-peers.json'));
  const load = async (name: string) =>
    (await import(join(ROOT, `bench/peers/${name}.mjs`))) as Record<string, (record: unknown) => string>;
  expect(read('docs/benchmarks-peers.svg'), 'node bench/picture.mjs').toBe(
    (await load('picture'))['renderPicture']?.(record),
  );
  expect(read('docs/benchmarks-peers.md'), 'node bench/picture.mjs').toBe((await load('page'))['renderPage']?.(record));
});

const PAGES = [
  ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md'],
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
  ...EXAMPLE_PAGES,
];

const withoutCode = (text: string): string => text.replace(/^ *```[\s\S]*?^ *```$/gm, '');

const { headingSlugs } = (await import(join(ROOT, 'scripts/lib/guide/heading-slugs.mjs'))) as {
  headingSlugs: () => (text: string) => string;
};

/** Returns the anchors that GitHub generates for the headings of a page. */
const anchorsOf = (page: string): Set<string> => {
  const headings = [...withoutCode(read(page)).matchAll(/^#+ (.+)$/gm)].map((match) => match[1] as string);
  return new Set(headings.map((heading) => heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')).map(headingSlugs()));
};

it.each(PAGES)('every link in %s points to an existing file and an existing heading', (page) => {
  const links = [...withoutCode(read(page)).matchAll(/\]\((?![a-z]+:)([^)\s]+)\)/g)].map((match) => match[1] as string);
  const broken = links.filter((link) => {
    const [path = '', anchor] = link.split('#');
    const file = path === '' ? page : posix.join(posix.dirname(page), path);
    if (!existsSync(join(ROOT, file))) return true;
    return anchor !== undefined && !anchorsOf(file).has(anchor);
  });
  expect(broken).toEqual([]);
});

it('docs/screenshots contains exactly the pictures that pages show', () => {
  const shown = PAGES.flatMap((page) =>
    [...read(page).matchAll(/screenshots\/([\w-]+\.png)/g)].map(([, name]) => name),
  );
  expect(new Set(readdirSync(join(ROOT, 'docs/screenshots')))).toEqual(new Set(shown));
});

it('every page in docs/ is in the table of contents, and the README links to it', () => {
  expect(read('README.md')).toContain('(docs/README.md)');
  const links = new Set([...read('docs/README.md').matchAll(/\]\(([\w-]+\.md)/g)].map((match) => `docs/${match[1]}`));
  const pages = PAGES.filter((page) => page.startsWith('docs/') && page !== 'docs/README.md');
  expect(pages.filter((page) => !links.has(page))).toEqual([]);
});

it('ARCHITECTURE.md names only error codes of the catalogue', () => {
  const codes = new Set(read('ARCHITECTURE.md').match(/\b[A-Z]+_[A-Z_]+\b/g));
  expect(codes.size).toBeGreaterThan(20);
  expect([...codes].filter((code) => !isErrorCode(code))).toEqual([]);
});
