// Plugins of esbuild that make programs start faster and use less memory. The sources do not depend on the plugins: without them, a
// program loads more code at its start, and behaves the same.
import { readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { parseSync } from 'oxc-parser';
import { isNoTest } from './hash-files.mjs';
import { ImportGraph, packageEntries, readSources } from './import-graph.mjs';
import { ROOT } from './paths.mjs';

/** Packages and files that many runs never use. Each runs, with everything that only it imports, when an export is used for the first time. */
const ON_FIRST_USE = [
  'stripe',
  'yaml',
  // Schemas of config.yml: a client without the file needs none.
  'packages/config/src/client/client-config.ts',
  'packages/config/src/layers/file-layers.ts',
  'packages/config/src/layers/problem.ts',
  'packages/config/src/layers/yaml-layer.ts',
  'packages/config/src/policy/policy-source.ts',
  'packages/policy/src/schema/policy-schema.ts',
  // Serving a folder loads the package send.
  'packages/client/src/local/files/served-folder.ts',
];

const SOURCES = /[\\/](?:packages|apps)[\\/][\w-]+[\\/]src[\\/].*\.tsx?$/;

let made;
/** The imports of all sources, read once per build. */
const importGraph = () => {
  made ??= new ImportGraph(new Map([...readSources()].filter(([path]) => isNoTest(path))), packageEntries());
  return made;
};

const pathOf = (file) => relative(ROOT, file).split(sep).join('/');

/**
 * Makes each import refer to the file that defines the name, not to the index.ts of a package. esbuild splits code by file: through an
 * index.ts, a command would load every file of a package that any command uses.
 */
const directImports = {
  name: 'direct-imports',
  setup: ({ onLoad }) => {
    onLoad({ filter: SOURCES, namespace: 'file' }, ({ path }) => {
      const text = readFileSync(path, 'utf8');
      return { contents: withDirectImports(pathOf(path), text), loader: path.endsWith('x') ? 'tsx' : 'ts' };
    });
  },
};

/** Rewrites the imports of a source. Lines keep their numbers. */
export function withDirectImports(path, text, graph = importGraph()) {
  let result = text;
  for (const { start, end, moduleRequest, entries } of parseSync(path, text).module.staticImports.toReversed()) {
    const direct = directStatements(graph, path, moduleRequest.value, entries);
    if (direct === null) continue;
    const lines = text.slice(start, end).split('\n').length - 1;
    result = result.slice(0, start) + direct.join(' ') + '\n'.repeat(lines) + result.slice(end);
  }
  return result.replaceAll(IMPORT_OF_ONE, (whole, specifier, imported) => {
    const { file, name } = graph.definitionOf(path, specifier, imported);
    return file === undefined || name === null ? whole : `(await import(${JSON.stringify(join(ROOT, file))})).${name}`;
  });
}

/** An import on demand that uses one name. */
const IMPORT_OF_ONE = /\(await import\('([^']+)'\)\)\.(\w+)/g;

/** Returns statements that import the names from the files that define them. Null if the statement has to stay. */
function directStatements(graph, path, specifier, entries) {
  const used = entries.filter(({ isType }) => !isType);
  if (entries.length === 0 || used.some(({ importName }) => importName.kind !== 'Name')) return null;
  const statements = used.map(({ importName, localName }) => {
    const { file, name } = graph.definitionOf(path, specifier, importName.name);
    if (file === undefined) return null;
    const what = name === null ? `* as ${localName.value}` : `{ ${name} as ${localName.value} }`;
    return `import ${what} from ${JSON.stringify(join(ROOT, file))};`;
  });
  return statements.includes(null) ? null : statements;
}

/** Puts a module with the same exports before each package and file of the list. The original runs at the first use of an export. */
const onFirstUse = {
  name: 'on-first-use',
  setup: ({ onLoad, onResolve, resolve }) => {
    const files = ON_FIRST_USE.map((one) => (one.endsWith('.ts') ? join(ROOT, one) : one));
    const filter = new RegExp(`^(?:${files.map((file) => file.replaceAll(/[.\\/]/g, '\\$&')).join('|')})$`);
    onResolve({ filter }, ({ path, kind, pluginData }) =>
      kind === 'import-statement' && pluginData !== 'itself'
        ? { path: path.endsWith('.ts') ? pathOf(path) : path, namespace: 'on-first-use' }
        : undefined,
    );
    onLoad({ filter: /./, namespace: 'on-first-use' }, async ({ path }) => {
      const getters = (await exportsOf(path)).map((name) => `get ${name}() { return load().${name}; }`);
      const from = { kind: 'import-statement', resolveDir: ROOT, pluginData: 'itself' };
      const file = await resolve(path.endsWith('.ts') ? join(ROOT, path) : path, from);
      const contents = `const load = () => require(${JSON.stringify(file.path)});
module.exports = { __esModule: true, ${getters.join(', ')} };`;
      return { contents, loader: 'js', resolveDir: ROOT };
    });
  },
};

/** Returns the names of the values that a package or source file exports. */
async function exportsOf(path) {
  if (path.endsWith('.ts')) {
    const { staticExports } = parseSync(path, readFileSync(join(ROOT, path), 'utf8')).module;
    return staticExports.flatMap(({ entries }) =>
      entries.filter(({ isType }) => !isType).map(({ exportName }) => exportName.name),
    );
  }
  return Object.keys(await import(path)).filter((name) => name !== 'default' && name !== 'module.exports');
}

/** Leaves out the texts of zod in other languages, 300 KB that a bundle contains as soon as a package uses zod as a value. */
const englishOnly = {
  name: 'english-only',
  setup: ({ onLoad }) =>
    onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js';",
    })),
};

export const BUNDLE_PLUGINS = [directImports, onFirstUse, englishOnly];
