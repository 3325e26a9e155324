// Graph of the imports between files. An import of a name that is re-exported by an index.ts points to the file that defines the name.
// Otherwise, a change of any file in a package would affect every importer of the package.
import { readFileSync } from 'node:fs';
import { join, posix, relative } from 'node:path';
import { parseSync } from 'oxc-parser';
import { filesBelow, ROOT, workspaceDirs } from './paths.mjs';

const FOLDERS = ['packages', 'apps', 'tests', 'scripts', 'bench'];
/** A quoted path, such as the path of a worker file, a mocked module or a script. */
const QUOTED_PATH = /(['"`])(?:\$\{ROOT\}\/)?([\w@./-]+\.(?:tsx?|mjs|cjs))\1/g;

/**
 * Paths from the repository root that count as references. Paths of packages do not count, because tests of the import rules use them in
 * made-up trees.
 */
const FROM_ROOT = /^(?:scripts|bench|tests)\//;

/** Whether a file is part of the graph, by its name. */
export const isSource = (path) => /\.(?:tsx?|mjs|cjs)$/.test(path);

/** Reads the sources of the repository. Returns a map from paths below the root to texts. */
export function readSources() {
  const below = FOLDERS.flatMap((dir) => filesBelow(join(ROOT, dir))).filter(isSource);
  const files = [join(ROOT, 'vitest.config.ts'), ...below];
  return new Map(files.map((file) => [relative(ROOT, file), readFileSync(file, 'utf8')]));
}

/** Returns the source path of each entry point of the workspace packages, by import specifier. */
export function packageEntries() {
  const entries = new Map();
  for (const dir of workspaceDirs()) {
    const { name, exports } = JSON.parse(readFileSync(join(ROOT, dir, 'package.json'), 'utf8'));
    for (const [path, conditions] of Object.entries(exports ?? {})) {
      if (conditions.source) entries.set(posix.join(name, path), posix.join(dir, conditions.source));
    }
  }
  return entries;
}

/** Returns the imports and re-exports of one file. A `name` of null means the whole module. */
export function readImports(file, text) {
  const { module } = parseSync(file, text);
  const nameOf = ({ kind, name }) => (kind === 'Default' ? 'default' : name);
  const isStatic = new Set();
  const imports = module.staticImports.flatMap(({ moduleRequest, entries }) => {
    isStatic.add(moduleRequest.start);
    const specifier = moduleRequest.value;
    if (entries.length === 0) return [{ specifier, name: null, isType: false }];
    return entries.map(({ importName, isType }) => ({ specifier, name: nameOf(importName), isType }));
  });
  const exports = module.staticExports
    .flatMap(({ entries }) => entries)
    .flatMap(({ moduleRequest, importName, exportName, isType }) => {
      if (moduleRequest) isStatic.add(moduleRequest.start);
      const specifier = moduleRequest?.value;
      const isStar = importName.kind === 'AllButDefault';
      return [{ specifier, name: nameOf(importName), as: isStar ? '*' : nameOf(exportName), isType }];
    });
  const whole = (specifier) => ({ specifier, name: null, isType: false });
  const dynamic = module.dynamicImports.map(({ moduleRequest: { start, end } }) =>
    whole(text.slice(start + 1, end - 1)),
  );
  const quoted = [...text.matchAll(QUOTED_PATH)].filter(({ index }) => !isStatic.has(index)).map((match) => match[2]);
  return { imports: [...imports, ...dynamic], exports, quoted };
}

export class ImportGraph {
  #sources;
  #entries;
  /** Exports by file path: for each exported name, the file and name to which a re-export points. */
  #exports = new Map();
  /** Importers by file path: `{ from, isType }` for each file that imports the file. */
  #importers = new Map();
  /** Users of re-exports by file path: `{ from, name, isType }` for each file that imports a name re-exported by the file. */
  #passed = new Map();

  /** Builds the graph. `sources` maps paths to texts, `entries` maps package specifiers to paths. */
  constructor(sources, entries) {
    this.#sources = sources;
    this.#entries = entries;
    const read = [...sources].map(([file, text]) => ({ file, ...readImports(file, text) }));
    for (const { file, exports } of read) this.#exports.set(file, this.#exportsOf(file, exports));
    for (const { file, imports, exports, quoted } of read) {
      for (const { specifier, name, isType } of imports)
        this.#addImport(file, this.#resolve(file, specifier), name, isType);
      for (const { specifier, isType } of exports) {
        if (specifier) this.#addArrow(file, this.#resolve(file, specifier), isType);
      }
      for (const path of quoted) {
        this.#addArrow(file, posix.join(posix.dirname(file), path), false);
        if (FROM_ROOT.test(path)) this.#addArrow(file, path, false);
      }
    }
  }

  get files() {
    return [...this.#sources.keys()];
  }

  /**
   * Returns the file that defines a name imported by the file `from`, and its name there. The file is undefined for a specifier that is no
   * source, such as a package of npm.
   */
  definitionOf(from, specifier, name) {
    const to = this.#resolve(from, specifier);
    return this.#sources.has(to) ? this.#originOf(to, name) : { file: undefined, name };
  }

  /** Returns the files with text matching the pattern. */
  filesWith(pattern) {
    return [...this.#sources].filter(([, text]) => pattern.test(text)).map(([file]) => file);
  }

  /**
   * Returns the files that a change of the `changed` files can affect, as a map from path to the number of imports in between, nearest
   * first. Type imports count only with `withTypes`, because types do not exist at run time.
   */
  reachedFrom(changed, { withTypes = false } = {}) {
    const distances = new Map(changed.map((file) => [file, 0]));
    for (const [file, distance] of distances) {
      for (const { from, isType } of this.#importers.get(file) ?? []) {
        if ((withTypes || !isType) && !distances.has(from)) distances.set(from, distance + 1);
      }
    }
    return distances;
  }

  /**
   * Returns the importers that now get a different definition for a name re-exported by `file`. `before` is the previous text of `file`.
   */
  redirectedBy(file, before) {
    const now = this.#exports.get(file) ?? new Map();
    const then = this.#exportsOf(file, readImports(file, before).exports);
    const isOther = (name) => JSON.stringify(now.get(name)) !== JSON.stringify(then.get(name));
    const importers = (this.#passed.get(file) ?? []).filter(({ name }) => isOther(name) || isOther('*'));
    return [...new Set(importers.map(({ from }) => from))];
  }

  #exportsOf(file, exports) {
    const found = new Map();
    for (const { specifier, name, as } of exports) {
      const to = specifier && this.#resolve(file, specifier);
      if (as === '*') found.set('*', [...(found.get('*') ?? []), to]);
      else found.set(as, to ? { to, name } : {});
    }
    return found;
  }

  #resolve(file, specifier) {
    return specifier.startsWith('.') ? posix.join(posix.dirname(file), specifier) : this.#entries.get(specifier);
  }

  #addImport(from, to, name, isType) {
    const doors = [];
    const origin = name === null ? to : this.#originOf(to, name, doors).file;
    for (const door of doors) push(this.#passed, door.file, { from, name: door.name, isType });
    this.#addArrow(from, origin, isType);
  }

  /** Returns the file that defines the export `name` of `file`, and the name there. Adds the re-exporting files on the way to `doors`. */
  #originOf(file, name, doors = []) {
    const exports = this.#exports.get(file);
    const next = exports?.get(name);
    if (next?.to) {
      doors.push({ file, name });
      return next.name === null ? { file: next.to, name: null } : this.#originOf(next.to, next.name, doors);
    }
    const star = next ? undefined : exports?.get('*')?.find((to) => this.#hasExport(to, name));
    if (!star) return { file, name };
    doors.push({ file, name });
    return this.#originOf(star, name, doors);
  }

  #hasExport(file, name) {
    const exports = this.#exports.get(file);
    return exports?.has(name) || exports?.get('*')?.some((to) => this.#hasExport(to, name));
  }

  #addArrow(from, to, isType) {
    if (this.#sources.has(to)) push(this.#importers, to, { from, isType });
  }
}

function push(map, key, value) {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}
