// Checks the imports between files of one workspace: forbidden imports, cycles, and files that no import reaches. An arrow is an import {
// from, to, line } between two files, as paths below src.
import { posix } from 'node:path';
import { ENTRY, SHARED_FILE } from './import-rules.mjs';

const isOfSrcItself = (file) => !file.includes('/');

/**
 * Returns the row of a file: a row for the file itself, the row `*.ts` for other files directly in src, or the longest row that is a
 * folder of the file.
 */
function rowOf(rows, file) {
  if (isOfSrcItself(file)) return Object.hasOwn(rows, file) ? file : '*.ts';
  const fitting = Object.keys(rows).filter((row) => file.startsWith(`${row}/`));
  return fitting.sort((a, b) => b.length - a.length)[0];
}

/** Whether an entry of an import rule (a folder, a file, or `*.ts`) includes a file. */
function covers(entry, file) {
  if (entry === '*.ts') return isOfSrcItself(file);
  if (entry.endsWith('/*.ts')) return posix.dirname(file) === entry.slice(0, -'/*.ts'.length);
  return file === entry || file.startsWith(`${entry}/`);
}

const isFree = (rows, from, to) =>
  to === SHARED_FILE ||
  (isOfSrcItself(from) && (isOfSrcItself(to) || (ENTRY.test(from) && !Object.hasOwn(rows, from))));

/** Returns the imports forbidden by `rows`, as { file, line, why }. */
export function forbiddenArrows(rows, arrows) {
  return arrows.flatMap(({ from, to, line }) => {
    const source = rowOf(rows, from);
    const target = rowOf(rows, to);
    const refuse = (why) => [{ file: from, line, why: `'${to}': ${why}` }];
    if (source === undefined) return refuse(`${posix.dirname(from)} has no row in scripts/lib/import-rules.mjs`);
    if (target === undefined) return refuse(`${posix.dirname(to)} has no row in scripts/lib/import-rules.mjs`);
    if (isFree(rows, from, to) || source === target) return [];
    if ((rows[source] ?? []).some((entry) => covers(entry, to))) return [];
    return refuse(`${isOfSrcItself(from) ? from : source} may not import ${isOfSrcItself(to) ? to : target}`);
  });
}

/** Returns sentences about rows without a file, and about entries that no import needs. */
export function unusedRules(rows, files, arrows) {
  const crossing = arrows.filter(({ from, to }) => !isFree(rows, from, to) && rowOf(rows, from) !== rowOf(rows, to));
  return Object.entries(rows).flatMap(([row, entries]) => {
    if (!files.some((file) => rowOf(rows, file) === row)) return [`the row '${row}' is of no file: delete it`];
    const ofRow = crossing.filter(({ from }) => rowOf(rows, from) === row);
    const unused = entries.filter((entry) => !ofRow.some(({ to }) => covers(entry, to)));
    return unused.map((entry) => `'${row}' may import '${entry}', but no file of it does: delete the entry`);
  });
}

/**
 * Finds cycles among the files and folders of the same parent folder, at every depth, such as `admin → routing → admin`. A folder with
 * all its contents counts as one node, and imports of types count like other imports. Files of one folder may import each other's types
 * in cycles; oxlint finds their cycles of values.
 */
export function cyclesOf(arrows) {
  const levels = new Map();
  for (const { from, to } of arrows) {
    const source = from.split('/');
    const target = to.split('/');
    let depth = 0;
    while (source[depth] === target[depth] && depth < source.length - 1) depth += 1;
    const parent = source.slice(0, depth).join('/');
    const level = levels.get(parent) ?? new Map();
    levels.set(parent, level);
    const nexts = level.get(source[depth]) ?? new Map();
    level.set(source[depth], nexts);
    if (source[depth] !== target[depth] && !nexts.has(target[depth])) nexts.set(target[depth], `${from} → ${to}`);
  }
  return [...levels].flatMap(([parent, level]) => circlesAmong(level).map((circle) => ({ parent, ...circle })));
}

/** Returns the shortest cycle for each group of names in a cycle, with an import for every arrow of the cycle. */
function circlesAmong(level) {
  const found = [];
  const covered = new Set();
  for (const start of level.keys()) {
    if (covered.has(start)) continue;
    const path = shortestWayBack(level, start);
    if (path === undefined) continue;
    for (const name of path) covered.add(name);
    const names = [...path, start];
    if (names.every((name) => /\.\w+$/.test(name))) continue;
    const imports = path.map((name, index) => level.get(name).get(names[index + 1]));
    found.push({ names, imports });
  }
  return found;
}

function shortestWayBack(level, start) {
  const ways = [[start]];
  const seen = new Set();
  for (const way of ways) {
    for (const next of level.get(way.at(-1))?.keys() ?? []) {
      if (next === start) return way;
      if (seen.has(next)) continue;
      seen.add(next);
      ways.push([...way, next]);
    }
  }
  return undefined;
}

/**
 * Returns the files that cannot be reached from an entry file. `isEntry` identifies entry files. Returns an empty list if there is no
 * entry file.
 */
export function unreached(files, isEntry, arrows) {
  const reached = new Set(files.filter(isEntry));
  if (reached.size === 0) return [];
  for (const file of reached) for (const { from, to } of arrows) if (from === file) reached.add(to);
  return files.filter((file) => !reached.has(file));
}
