// The selection of unit tests that `npm run verify` runs after a change, and of files that it lints.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { ROOT, run } from './checkout.fixture.ts';

interface Changed {
  readonly base?: string;
  readonly paths: readonly string[];
  readonly before: (path: string) => string;
}

interface Chosen {
  readonly tests?: readonly string[];
  readonly lint?: readonly string[];
  readonly lines: readonly string[];
}

type Graph = object;

const load = async <Module>(path: string): Promise<Module> => (await import(join(ROOT, path))) as Module;
const { ImportGraph } = await load<{
  ImportGraph: new (sources: ReadonlyMap<string, string>, entries: ReadonlyMap<string, string>) => Graph;
}>('scripts/lib/import-graph.mjs');
const { chooseChecks } = await load<{
  chooseChecks: (graph: Graph, changed: Changed | undefined, most?: number) => Chosen;
}>('scripts/lib/choose-checks.mjs');
const { changedFiles } = await load<{ changedFiles: (root: string) => Changed | undefined }>(
  'scripts/lib/changed-files.mjs',
);

const INDEX = `export { a, type A } from './a.ts';\nexport * from './b.ts';\nexport * as c from './c.ts';`;

const TREE = {
  'packages/core/src/index.ts': INDEX,
  'packages/core/src/a.ts': `export interface A {}\nexport const a = 1;`,
  'packages/core/src/a.test.ts': `import { a } from './a.ts';`,
  'packages/core/src/b.ts': `export const b = 1;\nexport const d = 1;`,
  'packages/core/src/b.slow.test.ts': `import { b } from './b.ts';`,
  'packages/core/src/b.db.test.ts': `import { b } from './b.ts';`,
  'packages/core/src/c.ts': `export const e = 1;`,
  'packages/core/src/worker.ts': `import './c.ts';`,
  'packages/core/src/worker.test.ts': `fork(new URL('./worker.ts', import.meta.url));`,
  'packages/core/src/all.test.ts': `import * as core from '@tunnel/core';`,
  'packages/core/src/late.test.ts': `const core = await import('@tunnel/core');`,
  'packages/edge/src/cases.fixture.ts': `import type { A } from '@tunnel/core';\nread('cases.json');`,
  'apps/edge/src/use-a.ts': `import { a } from '@tunnel/core';`,
  'apps/edge/src/use-a.test.ts': `import './use-a.ts';`,
  'apps/edge/src/use-b.test.ts': `import { b as ours } from '@tunnel/core';`,
  'apps/edge/src/use-c.test.ts': `import { c } from '@tunnel/core';`,
  'apps/edge/src/cases.test.ts': `import '../../../packages/edge/src/cases.fixture.ts'; // as in \`docs/cases.md\``,
  'apps/edge/src/page.test.ts': `read('docs/cases.md');`,
  'tests/repo/names.test.ts': `readdirSync('docs');`,
  'tests/repo/script.test.ts': `import(join(ROOT, 'scripts/lib/script.mjs'));`,
  'tests/repo/called.test.ts': 'run(`${ROOT}/scripts/lib/script.mjs`);',
  'tests/repo/script.load.test.ts': `import(join(ROOT, 'scripts/lib/script.mjs'));`,
  'tests/repo/tree.test.ts': `write('packages/core/src/a.ts', '');`,
  'scripts/lib/script.mjs': '',
  'apps/edge/src/configs/configs.test.ts': `readdirSync(import.meta.dirname);`,
  'apps/edge/src/ambient.ts': `declare global {\n}`,
};

const graph = new ImportGraph(new Map(Object.entries(TREE)), new Map([['@tunnel/core', 'packages/core/src/index.ts']]));

const choose = (paths: readonly string[], before = ''): Chosen => chooseChecks(graph, { paths, before: () => before });

const CORE = 'packages/core/src';
const EDGE = 'apps/edge/src';
/** A test that reads whole folders, so it always runs. */
const ALWAYS = 'tests/repo/names.test.ts';
const WHOLE = [`${CORE}/all.test.ts`, `${CORE}/late.test.ts`];

it.each([
  [
    'a name that a package re-exports leads to the file that defines it, and no further',
    `${CORE}/a.ts`,
    [`${CORE}/a.test.ts`, `${EDGE}/use-a.test.ts`, ...WHOLE],
  ],
  [
    'the same for all names of a file at once, and under other names; slow tests and those with a database are left out',
    `${CORE}/b.ts`,
    [`${EDGE}/use-b.test.ts`, ...WHOLE],
  ],
  [
    'a module that is one name, and a file that is only named by its path',
    `${CORE}/c.ts`,
    [`${CORE}/worker.test.ts`, `${EDGE}/use-c.test.ts`, ...WHOLE],
  ],
  ['a changed test', `${EDGE}/use-a.test.ts`, [`${EDGE}/use-a.test.ts`]],
  ['the users of a fixture', 'packages/edge/src/cases.fixture.ts', [`${EDGE}/cases.test.ts`]],
  ['the users of a data file', 'packages/edge/src/cases.json', [`${EDGE}/cases.test.ts`]],
  ['the test that looks through its folder', `${EDGE}/configs/bad/a.toml`, [`${EDGE}/configs/configs.test.ts`]],
  ['the tests that read a page, but not those that mention it', 'docs/cases.md', [`${EDGE}/page.test.ts`]],
  ['the tests of a script', 'scripts/lib/script.mjs', ['tests/repo/script.test.ts', 'tests/repo/called.test.ts']],
  ['nothing for a page that no test reads', 'docs/other.md', []],
  ['nothing for a source that is gone', `${CORE}/gone.ts`, []],
])('test selection: %s', (_, path, tests) => {
  expect(choose([path]).tests?.toSorted()).toEqual([ALWAYS, ...tests].toSorted());
});

it('a changed index.ts selects only tests of names that now come from a different file', () => {
  const index = `${CORE}/index.ts`;
  expect(choose([index], INDEX).tests?.toSorted()).toEqual([...WHOLE, ALWAYS].toSorted());
  expect(choose([index], INDEX.replace(`'./a.ts'`, `'./old.ts'`)).tests).toContain(`${EDGE}/use-a.test.ts`);
  expect(choose([index], INDEX.replace(`'./a.ts'`, `'./old.ts'`)).tests).not.toContain(`${EDGE}/use-c.test.ts`);
  expect(choose([index], INDEX.replace(`'./b.ts'`, `'./old.ts'`)).tests).toContain(`${EDGE}/use-b.test.ts`);
});

it('lint covers the files that import a changed file, including type-only imports', () => {
  expect(choose([`${CORE}/a.ts`]).lint).toEqual(
    expect.arrayContaining([`${CORE}/a.ts`, `${EDGE}/use-a.ts`, 'packages/edge/src/cases.fixture.ts']),
  );
  expect(choose([`${CORE}/a.ts`]).lint).not.toContain(`${EDGE}/use-b.test.ts`);
  expect(choose(['docs/other.md']).lint).toEqual([]);
});

it.each(['package.json', 'packages/core/package.json', 'tsconfig.tests.json', 'apps/edge/tsconfig.json'])(
  'a change of %s selects all tests and all files to lint',
  (path) => {
    expect(choose([path])).toEqual({
      lines: [`all unit tests, and those of the repository, because ${path} has changed`],
    });
  },
);

it.each(['.oxlintrc.json', `${EDGE}/ambient.ts`])(
  'a change of %s selects all files to lint, but no more tests',
  (path) => {
    const { lint, tests } = choose([path]);
    expect(lint).toBeUndefined();
    expect(tests).toEqual([ALWAYS]);
  },
);

it('above the maximum only the nearest tests run, and verify prints how many tests there are', () => {
  const { tests, lines } = chooseChecks(graph, { paths: [`${CORE}/a.ts`], before: () => '' }, 2);
  expect(tests).toEqual([ALWAYS, `${CORE}/a.test.ts`]);
  expect(lines).toEqual([
    '2 of the 5 test files that the changed file can make a difference to, the nearest: `npm run verify -- --all` runs all 14',
  ]);
});

it('verify prints how many test files run, and why', () => {
  expect(choose([`${CORE}/a.ts`, `${CORE}/b.ts`]).lines).toEqual([
    '6 of 14 test files, those that the 2 changed files can make a difference to',
  ]);
  expect(chooseChecks(graph, undefined)).toEqual({ lines: ['all unit tests, and those of the repository'] });
});

it('changed files are those that differ from the base branch, else those of the last commit, else unknown', async () => {
  const dir = await temporaryDirectory();
  const git = (...args: string[]) =>
    run('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], dir.path);
  const commit = async (name: string, text: string): Promise<void> => {
    writeFileSync(join(dir.path, name), text);
    await git('add', '.');
    await git('commit', '-qm', name);
  };
  const paths = (): string[] | undefined => changedFiles(dir.path)?.paths.toSorted();
  try {
    expect(paths()).toBeUndefined();
    await git('init', '-q', '-b', 'main');
    await commit('a', 'first');
    expect(paths()).toBeUndefined();
    await commit('b', 'second');
    expect(paths()).toEqual(['b']);
    await git('checkout', '-qb', 'topic');
    await commit('c', 'third');
    await commit('d', 'fourth');
    writeFileSync(join(dir.path, 'a'), 'changed');
    writeFileSync(join(dir.path, 'é e'), 'new');
    expect(paths()).toEqual(['a', 'c', 'd', 'é e']);
    expect(changedFiles(dir.path)?.before('a')).toBe('first');
    expect(changedFiles(dir.path)?.before('c')).toBe('');
  } finally {
    await dir.close();
  }
});
