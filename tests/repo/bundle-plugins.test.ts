// The rewriting of imports in bundles, by which a command loads only the files that it uses.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from './checkout.fixture.ts';

type Graph = object;

const { ImportGraph } = (await import(join(ROOT, 'scripts/lib/import-graph.mjs'))) as {
  ImportGraph: new (sources: ReadonlyMap<string, string>, entries: ReadonlyMap<string, string>) => Graph;
};
const { withDirectImports } = (await import(join(ROOT, 'scripts/lib/bundle-plugins.mjs'))) as {
  withDirectImports: (path: string, text: string, graph: Graph) => string;
};

const graph = new ImportGraph(
  new Map([
    ['packages/core/src/index.ts', `export { a, type A } from './a.ts';\nexport { b as renamed } from './b.ts';\n`],
    ['packages/core/src/a.ts', 'export interface A {}\nexport const a = 1;'],
    ['packages/core/src/b.ts', `export { c as b } from './c.ts';`],
    ['packages/core/src/c.ts', 'export const c = 1;'],
  ]),
  new Map([['@tunnel/core', 'packages/core/src/index.ts']]),
);
const rewrite = (text: string): string =>
  withDirectImports('apps/edge/src/user.ts', text, graph).replaceAll(`${ROOT}/`, '');

it.each([
  [`import { a } from '@tunnel/core';`, `import { a as a } from "packages/core/src/a.ts";`],
  [`import { type A, a as mine } from '@tunnel/core';`, `import { a as mine } from "packages/core/src/a.ts";`],
  [`import { renamed } from '@tunnel/core';`, `import { c as renamed } from "packages/core/src/c.ts";`],
  [`import type { A } from '@tunnel/core';`, ''],
  [`import { c } from '../../../packages/core/src/b.ts';`, `import { c as c } from "packages/core/src/b.ts";`],
  [`(await import('@tunnel/core')).renamed(1);`, `(await import("packages/core/src/c.ts")).c(1);`],
])('an import refers to the file that defines the name: %s', (text, expected) => {
  expect(rewrite(text)).toBe(expected);
});

it.each([
  `import { build } from 'esbuild';`,
  `import * as core from '@tunnel/core';`,
  `import '@tunnel/core';`,
  `(await import('esbuild')).build();`,
])('other imports stay: %s', (text) => {
  expect(rewrite(text)).toBe(text);
});

it('lines keep their numbers, so that stack traces and source maps stay right', () => {
  expect(rewrite(`import {\n  a,\n  renamed,\n} from '@tunnel/core';\nthrow a;`).split('\n')[4]).toBe('throw a;');
});
