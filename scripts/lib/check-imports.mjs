// Finds the imports that the tables in ARCHITECTURE.md forbid, and state that modules must not keep.
import { readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { cyclesOf, forbiddenArrows, unreached, unusedRules } from './folder-rules.mjs';
import {
  CORE_REFUSES,
  DESIGNED,
  ENTRY,
  FOLDER_MAY_IMPORT,
  FOR_TESTS,
  IMPURE_NAMES,
  MAY_IMPORT,
  NEVER_EXTERNAL,
  PURE,
} from './import-rules.mjs';
import { MODULE_VARIABLES } from './module-state.mjs';
import { filesBelow, ROOT, workspaceDirs } from './paths.mjs';
import { readModule } from './read-module.mjs';

const SCOPE = '@tunnel/';

/** Why `name` may not import `specifier`, or undefined. */
function refusal(name, file, workspaceRoot, specifier) {
  if (specifier.startsWith('.')) {
    if (FOR_TESTS.test(specifier)) return 'this file is for tests only';
    const outside = relative(workspaceRoot, resolve(dirname(file), specifier)).startsWith('..');
    return outside ? 'leaves its package; import the package by its name' : undefined;
  }
  if (specifier.startsWith(SCOPE)) {
    const [target, ...deeper] = specifier.slice(SCOPE.length).split('/');
    if (deeper.length > 0) return `reaches inside ${SCOPE}${target}; import from its index`;
    if (target === 'testkit' && name !== 'testkit') return 'testkit is for tests only';
    return MAY_IMPORT[name].includes(target) ? undefined : `${name} may not import ${target}`;
  }
  if (PURE.has(name) && (specifier.startsWith('node:') || builtinModules.includes(specifier))) {
    return `${name} runs anywhere and may not import Node.js modules`;
  }
  if (specifier === 'vitest' && name !== 'testkit') return 'vitest is for tests only';
  return NEVER_EXTERNAL[name]?.some((pattern) => pattern.test(specifier))
    ? `${name} may not import ${specifier}`
    : undefined;
}

/** Names that a pure package uses although it must not. */
function impurities(name, names) {
  if (!PURE.has(name)) return [];
  return names.flatMap((used) => {
    const refused = name === 'core' ? CORE_REFUSES.get(used.name) : undefined;
    if (refused) return [{ line: used.line(), why: `${name} may not use ${refused}` }];
    const isGlobal = IMPURE_NAMES.has(used.name) && !used.isKey;
    return isGlobal ? [{ line: used.line(), why: `${name} may not use \`${used.name}\`` }] : [];
  });
}

/** State that a pure package keeps in a module. */
function stateProblems(name, { variables, mutableExports }) {
  if (!PURE.has(name)) return [];
  return [
    ...variables.map((one) => ({
      line: one.line,
      why: `${name} may not have a variable of the module: \`${one.name}\``,
    })),
    ...mutableExports.map((one) => ({
      line: one.line,
      why: `${name} may not export what others can change: \`${one.name}\`; give it a readonly type`,
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
    const found = [...impurities(name, names), ...stateProblems(name, state)];
    variables.push(...state.variables.map((one) => `${relative(root, file)}:${one.line}: ${one.name}`));
    for (const { specifier, line } of imports) {
      const why = refusal(name, file, workspaceRoot, specifier);
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
