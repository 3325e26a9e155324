// Converts the raw counts of V8 (see provider.mjs) to the list of taken branches, each with test files that took the branch.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { filesBelow, ROOT, workspaceDirs } from '../paths.mjs';
import { branchesOf, lastAtMost } from './branches.mjs';
import { offsetsOf } from './source-map.mjs';

/** Maximum test files named per branch. */
const NAMED_TESTS = 3;

/** Whether a file is product code, as opposed to tests and test support. The dashboard is excluded, because it runs in a browser. */
const isProduct = (file) =>
  /^(?:packages|apps)\/[^/]+\/src\/.*(?<!\.d)\.ts$/.test(file) &&
  !/\.(?:test|fixture|conformance)\.ts$/.test(file) &&
  !/^(?:packages\/testkit|apps\/dashboard)\//.test(file);

export class BranchRecord {
  /** Branches by the path of the source file. */
  #files = new Map();
  /** Offsets to examine in a script, by the path of the script. */
  #probes = new Map();
  #scripts = 0;

  constructor() {
    for (const path of workspaceDirs().flatMap((dir) => filesBelow(join(ROOT, dir, 'src')))) {
      const file = relative(ROOT, path);
      if (!isProduct(file)) continue;
      const source = readFileSync(path, 'utf8');
      this.#files.set(file, { source, branches: branchesOf(file, source).map((branch) => ({ ...branch, tests: [] })) });
    }
  }

  /** Adds a folder filled by the coverage provider. */
  addFolder(dir) {
    for (const name of readdirSync(join(dir, 'counts'))) {
      const { test, modules } = readJson(join(dir, 'counts', name));
      for (const { hash, functions } of modules) this.#add(join(dir, 'scripts', `${hash}.js`), functions, test);
    }
    const left = readdirSync(dir).filter((name) => name.startsWith('worker-'));
    for (const name of [...readdirSync(join(dir, 'children')).map((child) => join('children', child)), ...left]) {
      this.#addChildren(join(dir, name));
    }
  }

  #addChildren(dir) {
    const label = join(dir, 'test.txt');
    const test = existsSync(label) ? readFileSync(label, 'utf8') : 'unknown';
    for (const name of readdirSync(dir).filter((file) => file.endsWith('.json'))) {
      const coverage = readJson(join(dir, name));
      for (const { url, functions } of coverage?.result ?? []) {
        if (/^file:.*\/dist\/[^/]+\.c?js$/.test(url)) this.#add(fileURLToPath(url), functions, test);
      }
    }
  }

  #add(script, functions, test) {
    const probes = this.#probesOf(script);
    if (probes.length === 0) return;
    this.#scripts++;
    const countAt = countsOf(functions);
    for (const { branch, at, whole } of probes) {
      if (branch.tests.length >= NAMED_TESTS || branch.tests.includes(test)) continue;
      const count = countAt(at);
      const isTaken = whole === undefined ? count > 0 : countAt(whole) > count;
      if (isTaken) branch.tests.push(test);
    }
  }

  #probesOf(script) {
    const known = this.#probes.get(script);
    if (known) return known;
    const made = existsSync(script) ? this.#makeProbes(script) : [];
    this.#probes.set(script, made);
    return made;
  }

  #makeProbes(script) {
    const code = readFileSync(script, 'utf8');
    const { map, begin, fileOf } = mapOf(script, code);
    if (!map) return [];
    const probes = [];
    const offsets = offsetsOf(map, code, begin, (name) => this.#files.get(fileOf(name))?.source);
    for (const [name, pairs] of offsets) {
      for (const branch of this.#files.get(fileOf(name)).branches) {
        const probe = branch.range
          ? { at: firstWithin(pairs, branch.range) }
          : { whole: firstWithin(pairs, branch.over[0]), at: firstWithin(pairs, branch.over[1]) };
        if (Object.values(probe).includes(undefined)) continue;
        branch.isSeen = true;
        probes.push({ branch, ...probe });
      }
    }
    return probes;
  }

  /** Converts the record to JSON. A branch without code in any script, such as an empty block, cannot be judged and is omitted. */
  toJson() {
    const branches = [];
    let unjudged = 0;
    for (const [file, { branches: all }] of this.#files) {
      for (const { id, line, text, tests, isSeen } of all) {
        if (isSeen || this.#isUnloaded(file)) branches.push({ file, id, line, text, covered: tests.length > 0, tests });
        else unjudged++;
      }
    }
    return { scripts: this.#scripts, unjudged, branches };
  }

  /** Whether no test and no program has loaded a file. Every branch of such a file is uncovered. */
  #isUnloaded(file) {
    return this.#files.get(file).branches.every(({ isSeen }) => !isSeen);
  }
}

/**
 * Returns the source map of a script, a function from source names to product files, and the offset in the script where the mapped code
 * begins.
 */
function mapOf(script, code) {
  const inline = code.lastIndexOf('//# sourceMappingURL=data:application/json;base64,');
  if (inline === -1) {
    return {
      map: readJson(`${script}.map`),
      begin: 0,
      fileOf: (name) => relative(ROOT, resolve(dirname(script), name)),
    };
  }
  const [, data] = /base64,([\w+/=]+)/.exec(code.slice(inline));
  const map = JSON.parse(Buffer.from(data, 'base64').toString());
  const file = map.file.replace(/^\//, '');
  // The mapped code begins after the function header that vitest adds around a module.
  return { map, begin: code.indexOf('{{') + 2, fileOf: () => file };
}

/** Returns the generated offset of the first mapped code within `range`. */
function firstWithin({ from, to }, [start, end]) {
  const at = lastAtMost(from, start - 1) + 1;
  return from[at] < end ? to[at] : undefined;
}

/**
 * Returns a function from an offset to the number of times that the code at the offset ran, according to the innermost range around the
 * offset.
 */
function countsOf(functions) {
  const ranges = functions.flatMap((one) => one.ranges);
  ranges.sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
  const starts = [];
  const counts = [];
  const open = [];
  const begin = (offset, count) => {
    starts.push(offset);
    counts.push(count);
  };
  const closeUntil = (offset) => {
    while (open.length > 0 && open.at(-1).endOffset <= offset) {
      const { endOffset } = open.pop();
      begin(endOffset, open.at(-1)?.count ?? 0);
    }
  };
  for (const range of ranges) {
    closeUntil(range.startOffset);
    open.push(range);
    begin(range.startOffset, range.count);
  }
  closeUntil(Infinity);
  return (offset) => counts[lastAtMost(starts, offset)] ?? 0;
}

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}
