// Finds imports forbidden by the tables in ARCHITECTURE.md, and module state that is not allowed.
import { existsSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { cyclesOf, forbiddenArrows, unreached, unusedRules } from './folder-rules.mjs';
import {
  DESIGNED,
  ENTRY,
  FOLDER_MAY_IMPORT,
  FOR_TESTS,
  IMPURE_NAMES,
  MAY_IMPORT,
  NEEDS_NODE,
  NEVER_EXTERNAL,
  PURE,
  RULES,
  RULES_ENTRIES,
  RULES_FILE,
  RULES_REFUSE,
  SHARED_FILE,
} from './import-rules.mjs';
import { MODULE_STATE } from './module-state.mjs';
import { filesBelow, ROOT, workspaceDirs } from './paths.mjs';
import { readModule } from './read-module.mjs';

const SCOPE = '@tunnel/';

/**
 * Returns the requirements for a file. `isPure` code runs anywhere; `isRules` code also receives time, randomness and waiting as
 * arguments.
 */
function kindOf(name, path) {
  if (NEEDS_NODE[name] && path.startsWith(NEEDS_NODE[name])) return { isPure: false, isRules: false, subject: name };
  const isRulesFile = RULES_FILE.test(path);
  const subject = isRulesFile ? 'a file of rules' : name;
  return { isPure: PURE.has(name) || isRulesFile, isRules: RULES.has(name) || isRulesFile, isRulesFile, subject };
}

/** Returns the reason why a file of workspace `name` must not import the package `specifier`, or undefined if the import is allowed. */
function packageRefusal(root, name, { isRulesFile }, specifier) {
  const [target, ...deeper] = specifier.slice(SCOPE.length).split('/');
  if (deeper.length > 0 && !entriesOf(root, target).includes(`./${deeper.join('/')}`)) {
    return `reaches inside ${SCOPE}${target}; import from one of its entries`;
  }
  if (target === 'testkit' && name !== 'testkit') return 'testkit is for tests only';
  if (!MAY_IMPORT[name].includes(target)) return `${name} may not import ${target}`;
  const isOfRules = PURE.has(target) || RULES_ENTRIES.has([target, ...deeper].join('/'));
  return isRulesFile && !isOfRules ? 'a file of rules may import only rules' : undefined;
}

/** Returns the entry points of a package, such as `.` and `./subject`. */
function entriesOf(root, target) {
  const file = join(root, 'packages', target, 'package.json');
  return existsSync(file) ? Object.keys(JSON.parse(readFileSync(file, 'utf8')).exports ?? {}) : [];
}

/** Returns the reason why a file must not import another file of its workspace, or undefined if the import is allowed. */
function fileRefusal(file, workspaceRoot, { isRulesFile }, specifier) {
  if (FOR_TESTS.test(specifier)) return 'this file is for tests only';
  const outside = relative(workspaceRoot, resolve(dirname(file), specifier)).startsWith('..');
  if (outside) return 'leaves its package; import the package by its name';
  const isOfRules = RULES_FILE.test(specifier) || basename(specifier) === SHARED_FILE || specifier.endsWith('.json');
  return isRulesFile && !isOfRules ? 'a file of rules may import only rules' : undefined;
}

/** Returns the reason why a file must not import `specifier`, or undefined if the import is allowed. */
function refusal({ root, name, file, workspaceRoot, kind }, specifier) {
  if (specifier.startsWith('.')) return fileRefusal(file, workspaceRoot, kind, specifier);
  if (specifier.startsWith(SCOPE)) return packageRefusal(root, name, kind, specifier);
  if (kind.isPure && (specifier.startsWith('node:') || builtinModules.includes(specifier))) {
    return `${kind.subject} runs anywhere and may not import Node.js modules`;
  }
  if (specifier === 'vitest' && name !== 'testkit') return 'vitest is for tests only';
  return NEVER_EXTERNAL[name]?.some((pattern) => pattern.test(specifier))
    ? `${name} may not import ${specifier}`
    : undefined;
}

/** Finds names used by pure code against the rules. */
function impurities({ isPure, isRules, subject }, names) {
  if (!isPure) return [];
  return names.flatMap((used) => {
    const refused = isRules ? RULES_REFUSE.get(used.name) : undefined;
    if (refused) return [{ line: used.line(), why: `${subject} may not use ${refused}` }];
    const isGlobal = IMPURE_NAMES.has(used.name) && !used.isKey;
    return isGlobal ? [{ line: used.line(), why: `${subject} may not use \`${used.name}\`` }] : [];
  });
}

/** Finds forbidden module state. Pure code must have no module state, other code only the state listed with a reason. */
function stateProblems({ isPure, subject }, path, { variables, mutableExports, written }) {
  const listed = MODULE_STATE[path] ?? {};
  const exported = mutableExports.map((one) => ({
    line: one.line,
    why: `${subject} may not export what others can change: \`${one.name}\`; give it a readonly type`,
  }));
  const pureVariables = variables.map((one) => ({
    line: one.line,
    why: `${subject} may not have a variable of the module: \`${one.name}\``,
  }));
  const kept = (isPure ? written : [...variables, ...written]).filter(({ name }) => listed[name] === undefined);
  return [
    ...(isPure ? [...pureVariables, ...exported] : []),
    ...kept.map(({ line, name }) => ({
      line,
      why: `the module keeps \`${name}\`; keep it in an object that is passed on, or list it with a reason in scripts/lib/module-state.mjs`,
    })),
  ];
}

/** Finds rows of MODULE_STATE without matching state. `found` contains the state of all modules in a checkout, as `path name`. */
function unusedState(found) {
  const rows = Object.entries(MODULE_STATE).flatMap(([path, names]) => Object.keys(names).map((name) => [path, name]));
  return rows
    .filter(([path, name]) => !found.has(`${path} ${name}`))
    .map(([path, name]) => `scripts/lib/module-state.mjs: ${path} keeps no \`${name}\` any more: remove the row`);
}

/** Reports a workspace with folders but without a table of folders. Temporary trees made by tests need no table. */
function tableProblems(root, name, files) {
  const hasFolders = files.some((file) => file.includes('/'));
  return root === ROOT && hasFolders && !FOLDER_MAY_IMPORT[name]
    ? [`scripts/lib/import-rules.mjs: ${name} has folders; give it a table in FOLDER_MAY_IMPORT`]
    : [];
}

function arrowProblems(name, files, arrows) {
  const rows = FOLDER_MAY_IMPORT[name];
  const helpers = unreached(files, (file) => ENTRY.test(file), arrows);
  return [
    ...(rows ? forbiddenArrows(rows, arrows) : []).map(({ file, line, why }) => `${file}:${line}: ${why}`),
    ...cyclesOf(arrows).map(({ parent, names, imports }) =>
      [`${parent}: a circle: ${names.join(' → ')}`, ...imports.map((arrow) => `    ${arrow}`)].join('\n'),
    ),
    ...helpers.map((file) => `${file}:1: only tests use this; it should be a .fixture.ts`),
  ];
}

function checkWorkspace(root, dir, kept) {
  const name = basename(dir);
  if (!MAY_IMPORT[name]) return [`${dir}: no row in scripts/lib/import-rules.mjs; give the new package its rule first`];
  const workspaceRoot = join(root, dir);
  const src = join(workspaceRoot, 'src');
  const files = filesBelow(src).filter((file) => /\.[cm]?tsx?$/.test(file) && !FOR_TESTS.test(file));
  const known = new Set(files);
  const arrows = [];
  const problems = files.flatMap((file) => {
    const { imports, names, syntaxError, ...state } = readModule(file, readFileSync(file, 'utf8'));
    if (syntaxError) return [`${relative(root, file)}:1: cannot be read: ${syntaxError}`];
    const kind = kindOf(name, relative(src, file));
    const path = relative(root, file);
    const found = [...impurities(kind, names), ...(name === 'testkit' ? [] : stateProblems(kind, path, state))];
    for (const one of [...state.variables, ...state.written]) kept.add(`${path} ${one.name}`);
    for (const { specifier, line } of imports) {
      const why = refusal({ root, name, file, workspaceRoot, kind }, specifier);
      if (why) found.push({ line, why: `'${specifier}': ${why}` });
      const target = resolve(dirname(file), specifier);
      if (specifier.startsWith('.') && known.has(target)) {
        arrows.push({ from: relative(src, file), to: relative(src, target), line });
      }
    }
    return found.map(({ line, why }) => `${relative(root, file)}:${line}: ${why}`);
  });
  const paths = files.map((file) => relative(src, file));
  // A temporary tree made by a test has few files, so most rules would be reported as unused.
  const unused = root === ROOT && !DESIGNED.has(name) ? unusedRules(FOLDER_MAY_IMPORT[name] ?? {}, paths, arrows) : [];
  return [
    ...problems,
    ...tableProblems(root, name, paths),
    ...arrowProblems(name, paths, arrows).map((problem) => `${dir}/src/${problem}`),
    ...unused.map((rule) => `scripts/lib/import-rules.mjs: ${name}: ${rule}`),
  ];
}

/** Number of lines above which a file may contain a second subject. Longer files are not an error, so only a note is printed. */
const LONG_LINES = 600;

function notesOnLength(root) {
  const files = ['packages', 'apps', 'tests', 'bench', 'scripts'].flatMap((dir) => filesBelow(join(root, dir)));
  return files
    .filter((file) => /\.(?:tsx?|mjs)$/.test(file))
    .map((file) => [file, readFileSync(file, 'utf8').split('\n').length - 1])
    .filter(([, lines]) => lines > LONG_LINES)
    .map(([file, lines]) => `note: ${relative(root, file)} has ${lines} lines; look for a second subject in it`);
}

/** Checks the checkout at `root`. Returns the report and the exit code. */
export function checkImports(root) {
  const kept = new Set();
  const problems = workspaceDirs(root).flatMap((dir) => checkWorkspace(root, dir, kept));
  if (root === ROOT) problems.push(...unusedState(kept));
  const count = problems.length === 0 ? 'import rules hold' : `${problems.length} forbidden imports, names or state`;
  return { text: [...problems, ...notesOnLength(root), count, ''].join('\n'), code: problems.length === 0 ? 0 : 1 };
}
