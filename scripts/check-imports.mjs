// Fails on an import that the table in ARCHITECTURE.md forbids. npm's hoisting would let any sibling resolve.
// usage: node scripts/check-imports.mjs [ROOT]
import { readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { CORE_REFUSES, IMPURE_NAMES, MAY_IMPORT, NEVER_EXTERNAL, PURE } from './lib/import-rules.mjs';
import { filesBelow, ROOT, workspaceDirs } from './lib/paths.mjs';

const SCOPE = '@tunnel/';
const STATEMENT = /^\s*(?:import|export)\b(?:[^'";]*?\bfrom)?\s*['"]([^'"]+)['"]/gm;
const CALL = /\b(?:import|require)\(\s*['"]([^'"]+)['"]\s*\)/g;
const COMMENT_OR_STRING = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g;

const lineAt = (text, index) => text.slice(0, index).split('\n').length;

function importsOf(text) {
  const found = [...text.matchAll(STATEMENT), ...text.matchAll(CALL)];
  return found.map((match) => ({ specifier: match[1], line: lineAt(text, match.index + match[0].length) }));
}

/** Why `name` may not import `specifier`, or undefined. */
function refusal(name, file, workspaceRoot, specifier) {
  if (specifier.startsWith('.')) {
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
  return NEVER_EXTERNAL[name]?.some((pattern) => pattern.test(specifier))
    ? `${name} may not import ${specifier}`
    : undefined;
}

/** Names that a pure package uses although it must not. */
function impurities(name, text) {
  if (!PURE.has(name)) return [];
  const code = text.replace(COMMENT_OR_STRING, (part) => part.replace(/[^\n]/g, ' '));
  const names = new RegExp(`(?<![.\\w$])(?:${IMPURE_NAMES.join('|')})(?![\\w$]|\\s*[:?])`, 'g');
  const found = [...code.matchAll(names)].map((match) => ({ index: match.index, what: `\`${match[0]}\`` }));
  if (name === 'core') {
    for (const { pattern, name: what } of CORE_REFUSES) {
      found.push(...[...code.matchAll(pattern)].map((match) => ({ index: match.index, what })));
    }
  }
  return found.map(({ index, what }) => ({ line: lineAt(code, index), why: `${name} may not use ${what}` }));
}

function checkWorkspace(root, dir) {
  const name = basename(dir);
  if (!MAY_IMPORT[name]) return [`${dir}: no row in scripts/lib/import-rules.mjs; give the new package its rule first`];
  const workspaceRoot = join(root, dir);
  const sources = filesBelow(join(workspaceRoot, 'src')).filter(
    (file) => /\.[cm]?tsx?$/.test(file) && !/\.(?:test|conformance|fixture)\.tsx?$/.test(file),
  );
  return sources.flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    const problems = impurities(name, text);
    for (const { specifier, line } of importsOf(text)) {
      const why = refusal(name, file, workspaceRoot, specifier);
      if (why) problems.push({ line, why: `'${specifier}': ${why}` });
    }
    return problems.map(({ line, why }) => `${relative(root, file)}:${line}: ${why}`);
  });
}

const root = resolve(process.argv[2] ?? ROOT);
const problems = workspaceDirs(root).flatMap((dir) => checkWorkspace(root, dir));
for (const problem of problems) console.log(problem);
console.log(problems.length === 0 ? 'import rules hold' : `${problems.length} forbidden imports or names`);
process.exitCode = problems.length === 0 ? 0 : 1;
