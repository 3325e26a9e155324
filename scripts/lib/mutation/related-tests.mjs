// Which test files import a source file, directly or through others. vitest can tell as well, in fifteen seconds for each file.
import { readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { parseSync } from 'oxc-parser';
import { filesBelow, ROOT, workspaceDirs } from '../paths.mjs';

/** The folders below the checkout in which tests are. */
const FOLDERS = ['packages', 'apps', 'tests'];

export class RelatedTests {
  /** Importers of each file. Imports of types do not count: nothing of them runs. */
  #importers = new Map();

  constructor() {
    const entries = packageEntries();
    const files = FOLDERS.flatMap((dir) => filesBelow(join(ROOT, dir))).filter((file) => file.endsWith('.ts'));
    for (const file of files) {
      for (const specifier of importsOf(file)) {
        const target = specifier.startsWith('.') ? resolve(dirname(file), specifier) : entries.get(specifier);
        if (target) this.#importers.set(target, [...(this.#importers.get(target) ?? []), file]);
      }
    }
  }

  /** The nearest first: they find a fault in the file soonest. */
  of(file) {
    const start = join(ROOT, file);
    const reached = new Set([start]);
    for (const one of reached) for (const importer of this.#importers.get(one) ?? []) reached.add(importer);
    const tests = [...reached].filter((one) => one.endsWith('.test.ts'));
    return tests.toSorted((a, b) => common(start, b) - common(start, a)).map((test) => relative(ROOT, test));
  }
}

function importsOf(file) {
  const { module } = parseSync(file, readFileSync(file, 'utf8'));
  const isRun = ({ entries }) => entries.length === 0 || entries.some(({ isType }) => !isType);
  const exported = module.staticExports.flatMap(({ entries }) =>
    entries
      .filter(({ isType, moduleRequest }) => !isType && moduleRequest)
      .map(({ moduleRequest }) => moduleRequest.value),
  );
  const text = readFileSync(file, 'utf8');
  const dynamic = module.dynamicImports.map(({ moduleRequest }) =>
    text.slice(moduleRequest.start + 1, moduleRequest.end - 1),
  );
  return new Set([
    ...module.staticImports.filter(isRun).map(({ moduleRequest }) => moduleRequest.value),
    ...exported,
    ...dynamic,
  ]);
}

/** The source that each of our packages is imported by. */
function packageEntries() {
  const entries = new Map();
  for (const dir of workspaceDirs()) {
    const { name, exports } = JSON.parse(readFileSync(join(ROOT, dir, 'package.json'), 'utf8'));
    for (const [path, conditions] of Object.entries(exports ?? {})) {
      if (conditions.source) entries.set(join(name, path), join(ROOT, dir, conditions.source));
    }
  }
  return entries;
}

/** How much of their beginning two paths share. */
function common(a, b) {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return length;
}
