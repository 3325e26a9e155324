// Every name that a package exports must be used by a different workspace or by a test outside the package. All other names should stay
// internal.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from './checkout.fixture.ts';

interface Module {
  readonly imports: readonly { readonly specifier: string; readonly name: string | null }[];
  readonly exports: readonly { readonly specifier?: string; readonly name: string | null; readonly as: string }[];
}

const { readImports, readSources, packageEntries } = (await import(join(ROOT, 'scripts/lib/import-graph.mjs'))) as {
  readImports: (file: string, text: string) => Module;
  readSources: () => Map<string, string>;
  packageEntries: () => Map<string, string>;
};

/** Libraries for programs that are not in this repository. Their exports need no users here. */
const LIBRARIES = new Set(['@tunnel/client', '@tunnel/testkit']);
/** Stands for an import of the whole module: `import * as all`, or `await import()`, because that statement does not list names. */
const WHOLE = '*';

/** Types that TypeScript writes into declarations of other workspaces although their sources do not import the types. */
const INFERRED = new Set(['@tunnel/certificates/domains: DomainState', '@tunnel/http1: HttpVersion']);

const workspaceOf = (path: string): string => path.split('/').slice(0, 2).join('/');

const entries = packageEntries();
const sources = readSources();
/** Names that files outside a package import, for each entry of the package. */
const taken = new Map([...entries.keys()].map((specifier) => [specifier, new Set<string>()]));
for (const [file, text] of sources) {
  if (!text.includes('@tunnel/')) continue;
  const { imports, exports } = readImports(file, text);
  for (const { specifier = '', name } of [...imports, ...exports]) {
    const entry = entries.get(specifier);
    if (entry && workspaceOf(entry) !== workspaceOf(file)) taken.get(specifier)?.add(name ?? WHOLE);
  }
  for (const [, specifier = '', name = ''] of text.matchAll(/import\('(@tunnel\/[^']+)'\)\.(\w+)/g)) {
    taken.get(specifier)?.add(name);
  }
}

const unused = [...entries].flatMap(([specifier, file]) => {
  const names = taken.get(specifier) ?? new Set();
  if (LIBRARIES.has(specifier) || names.has(WHOLE)) return [];
  const { exports } = readImports(file, sources.get(file) ?? '');
  return exports.filter(({ as }) => as !== '*' && !names.has(as)).map(({ as }) => `${specifier}: ${as}`);
});

it('every export of a package is used by a different workspace or by a test outside the package', () => {
  expect([...taken.values()].reduce((sum, { size }) => sum + size, 0)).toBeGreaterThan(500);
  expect(unused.filter((name) => !INFERRED.has(name))).toEqual([]);
});
