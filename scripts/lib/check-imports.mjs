// Finds the imports that the tables in ARCHITECTURE.md forbid, and state that modules must not keep.
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
import { MODULE_VARIABLES } from './module-state.mjs';
import { filesBelow, ROOT, workspaceDirs } from './paths.mjs';
import { readModule } from './read-module.mjs';

const SCOPE = '@tunnel/';

/** What a file has to be: `isPure` runs anywhere, `isRules` also takes time, chance and waiting as arguments. */
function kindOf(name, path) {
  if (NEEDS_NODE[name] && path.startsWith(NEEDS_NODE[name])) return { isPure: false, isRules: false, subject: name };
  const isRulesFile = RULES_FILE.test(path);
  const subject = isRulesFile ? 'a file of rules' : name;
  return { isPure: PURE.has(name) || isRulesFile, isRules: RULES.has(name) || isRulesFile, isRulesFile, subject };
}

/** Why a file of `name` may not import the package `specifier`, or undefined. */
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

/** The entries that a package offers: `.`, `./subject`. */
function entriesOf(root, target) {
  const file = join(root, 'packages', target, 'package.json');
  return existsSync(file) ? Object.keys(JSON.parse(readFileSync(file, 'utf8')).exports ?? {}) : [];
}

/** Why a file may not import another file of its workspace, or undefined. */
function fileRefusal(file, workspaceRoot, { isRulesFile }, specifier) {
  if (FOR_TESTS.test(specifier)) return 'this file is for tests only';
  const outside = relative(workspaceRoot, resolve(dirname(file), specifier)).startsWith('..');
  if (outside) return 'leaves its package; import the package by its name';
  const isOfRules = RULES_FILE.test(specifier) || basename(specifier) === SHARED_FILE || specifier.endsWith('.json');
  return isRulesFile && !isOfRules ? 'a file of rules may import only rules' : undefined;
}

/** Why a file may not import `specifier`, or undefined. */
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

/** Names that pure code uses although it must not. */
function impurities({ isPure, isRules, subject }, names) {
  if (!isPure) return [];
  return names.flatMap((used) => {
    const refused = isRules ? RULES_REFUSE.get(used.name) : undefined;
    if (refused) return [{ line: used.line(), why: `${subject} may not use ${refused}` }];
    const isGlobal = IMPURE_NAMES.has(used.name) && !used.isKey;
    return isGlobal ? [{ line: used.line(), why: `${subject} may not use \`${used.name}\`` }] : [];
  });
}

/** State that pure code keeps in a module. */
function stateProblems({ isPure, subject }, { variables, mutableExports }) {
  if (!isPure) return [];
  return [
    ...variables.map((one) => ({
      line: one.line,
      why: `${subject} may not have a variable of the module: \`${one.name}\``,
    })),
    ...mutableExports.map((one) => ({
      line: one.line,
      why: `${subject} may not export what others can change: \`${one.name}\`; give it a readonly type`,
    })),
  ];
}

/** Variables of modules where code is not pure: `found` is where they are. */
function variableProblems(root, dir, name, found) {
  const bound = MODULE_VARIABLES[name] ?? 0;
  if (PURE.has(name)) return [];
  if (found.length > bound) {
    return [
      `${dir}: ${found.length} module-level variables (let), ${bound} allowed; keep state in an object that is passed on`,
      ...found.map((one) => `    ${one}`),
    ];
  }
  const isLower = root === ROOT && found.length < bound;
  return isLower
    ? [
        `scripts/lib/module-state.mjs: ${name}: ${found.length} module-level variables are left: lower the bound ${bound}`,
      ]
    : [];
}

/** A workspace with folders has a table of them. Trees that tests make need none. */
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

function checkWorkspace(root, dir) {
  const name = basename(dir);
  if (!MAY_IMPORT[name]) return [`${dir}: no row in scripts/lib/import-rules.mjs; give the new package its rule first`];
  const workspaceRoot = join(root, dir);
  const src = join(workspaceRoot, 'src');
  const files = filesBelow(src).filter((file) => /\.[cm]?tsx?$/.test(file) && !FOR_TESTS.test(file));
  const known = new Set(files);
  const arrows = [];
  const variables = [];
  const problems = files.flatMap((file) => {
    const { imports, names, syntaxError, ...state } = readModule(file, readFileSync(file, 'utf8'));
    if (syntaxError) return [`${relative(root, file)}:1: cannot be read: ${syntaxError}`];
    const kind = kindOf(name, relative(src, file));
    const found = [...impurities(kind, names), ...stateProblems(kind, state)];
    variables.push(...state.variables.map((one) => `${relative(root, file)}:${one.line}: ${one.name}`));
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
  // A tree that a test has made has few files, and most rules have nothing to do there.
  const unused = root === ROOT && !DESIGNED.has(name) ? unusedRules(FOLDER_MAY_IMPORT[name] ?? {}, paths, arrows) : [];
  return [
    ...problems,
    ...tableProblems(root, name, paths),
    ...(name === 'testkit' ? [] : variableProblems(root, dir, name, variables)),
    ...arrowProblems(name, paths, arrows).map((problem) => `${dir}/src/${problem}`),
    ...unused.map((rule) => `scripts/lib/import-rules.mjs: ${name}: ${rule}`),
  ];
}

/** A file longer than this may hold a second subject. It is no mistake: a note is printed, and nothing fails. */
const LONG_LINES = 600;

function notesOnLength(root) {
  const files = ['packages', 'apps', 'tests', 'bench', 'scripts'].flatMap((dir) => filesBelow(join(root, dir)));
  return files
    .filter((file) => /\.(?:tsx?|mjs)$/.test(file))
    .map((file) => [file, readFileSync(file, 'utf8').split('\n').length - 1])
    .filter(([, lines]) => lines > LONG_LINES)
    .map(([file, lines]) => `note: ${relative(root, file)} has ${lines} lines; look for a second subject in it`);
}

/** What is to be said of the checkout at `root`, and the exit code. */
export function checkImports(root) {
  const problems = workspaceDirs(root).flatMap((dir) => checkWorkspace(root, dir));
  const count = problems.length === 0 ? 'import rules hold' : `${problems.length} forbidden imports, names or state`;
  return { text: [...problems, ...notesOnLength(root), count, ''].join('\n'), code: problems.length === 0 ? 0 : 1 };
}
