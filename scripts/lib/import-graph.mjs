// Which files import which. An import of a name that an index.ts re-exports leads to the file that defines the name: else a change of any file of a package would reach
// everything that imports the package.
import { readFileSync } from 'node:fs';
import { join, posix, relative } from 'node:path';
import { parseSync } from 'oxc-parser';
import { filesBelow, ROOT, workspaceDirs } from './paths.mjs';

const FOLDERS = ['packages', 'apps', 'tests', 'scripts', 'bench'];
/** A quoted path, such as that of a worker's file, of a mocked module or of a script. */
const QUOTED_PATH = /(['"`])(?:\$\{ROOT\}\/)?([\w@./-]+\.(?:tsx?|mjs|cjs))\1/g;

/** Paths from the root of the repository count where they lead to scripts. Tests of our rules write those of packages into trees that they make up. */
const FROM_ROOT = /^(?:scripts|bench|tests)\//;

/** Whether the graph has files of this name. */
export const isSource = (path) => /\.(?:tsx?|mjs|cjs)$/.test(path);

/** The sources of the repository by their paths below its root. */
export function readSources() {
  const below = FOLDERS.flatMap((dir) => filesBelow(join(ROOT, dir))).filter(isSource);
  const files = [join(ROOT, 'vitest.config.ts'), ...below];
  return new Map(files.map((file) => [relative(ROOT, file), readFileSync(file, 'utf8')]));
}

/** The path of the source that each specifier of our packages stands for. */
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

/** What one file imports and re-exports. A `name` of null stands for the whole module. */
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
  /** By the path of a file: its exports by their names, with the file and the name that each re-export leads to. */
  #exports = new Map();
  /** By the path of a file: `{ from, isType }` for each file that imports it. */
  #importers = new Map();
  /** By the path of a file: `{ from, name, isType }` for each file that imports a name which this one re-exports. */
  #passed = new Map();

  /** `sources` are texts by paths, `entries` the paths of packages by specifiers. */
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

  /** Files whose text matches. */
  filesWith(pattern) {
    return [...this.#sources].filter(([, text]) => pattern.test(text)).map(([file]) => file);
  }

  /**
   * The files that a change of `changed` can make a difference to, as a map from their paths to how many imports lie between; the nearest first. Imports of types
   * count only `withTypes`: nothing of them runs.
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

  /** The files that get something else than before by a name that they import through `file`, which re-exports it, and whose text was `before`. */
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
    const origin = name === null ? to : this.#originOf(to, name, doors);
    for (const door of doors) push(this.#passed, door.file, { from, name: door.name, isType });
    this.#addArrow(from, origin, isType);
  }

  /** The file that defines what `file` exports as `name`; `doors` collects the files that re-export it on the way there. */
  #originOf(file, name, doors) {
    const exports = this.#exports.get(file);
    const next = exports?.get(name);
    if (next?.to) {
      doors.push({ file, name });
      return next.name === null ? next.to : this.#originOf(next.to, next.name, doors);
    }
    const star = next ? undefined : exports?.get('*')?.find((to) => this.#hasExport(to, name));
    if (!star) return file;
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
