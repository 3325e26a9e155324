// Reads the imports, the used names and the state of a source file from its syntax tree. Comments and strings do not count.
import { parseSync, visitorKeys } from 'oxc-parser';
import { moduleState } from './module-state.mjs';

const lineAt = (text, index) => text.slice(0, index).split('\n').length;

/**
 * @typedef {{ name: string, line: number }} Named
 * @returns {{ imports: { specifier: string, line: number }[], names: Use[], variables: Named[], mutableExports: Named[], written: Named[], syntaxError?: string }}
 */
export function readModule(file, text) {
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) {
    return { imports: [], names: [], variables: [], mutableExports: [], written: [], syntaxError: errors[0].message };
  }
  const imports = [];
  const names = [];
  walk(program, null, '', (node, parent, key) => {
    const source = sourceOf(node);
    // Uses the line of the module name, because the list of imported names may begin many lines earlier.
    if (source) imports.push({ specifier: source.value, line: lineAt(text, source.start) });
    // Computes the line on demand, because only rejected names need a line.
    for (const name of namesOf(node, parent, key)) names.push({ ...name, line: () => lineAt(text, node.start) });
  });
  const { variables, mutableExports, written } = moduleState(program);
  const withLine = ({ name, start }) => ({ name, line: lineAt(text, start) });
  return {
    imports,
    names,
    variables: variables.map(withLine),
    mutableExports: mutableExports.map(withLine),
    written: written.map(withLine),
  };
}

function walk(node, parent, key, visit) {
  visit(node, parent, key);
  for (const child of visitorKeys[node.type] ?? []) {
    for (const next of [node[child]].flat()) if (next) walk(next, node, child, visit);
  }
}

const literal = (node) => {
  if (node?.type === 'Literal' && typeof node.value === 'string') return node;
  const isPlain = node?.type === 'TemplateLiteral' && node.expressions.length === 0;
  return isPlain ? { value: node.quasis[0].value.cooked, start: node.start } : undefined;
};

/** Returns the string that names the imported module if `node` is an import. Type imports and `require` count too. */
function sourceOf(node) {
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportNamedDeclaration':
    case 'ExportAllDeclaration':
    case 'ImportExpression':
      return literal(node.source);
    case 'TSImportType':
      return literal(node.source ?? node.argument?.literal ?? node.argument);
    case 'TSExternalModuleReference':
      return literal(node.expression);
    case 'CallExpression':
      return node.callee.type === 'Identifier' && node.callee.name === 'require'
        ? literal(node.arguments[0])
        : undefined;
    default:
      return undefined;
  }
}

/**
 * Returns names in the form used by the import rules: `process` or `Date.now` where they are used, `new Date()` for the current time, and
 * `async` for syntax that waits. `isKey` marks a name that is only the key of a property.
 */
function namesOf(node, parent, key) {
  switch (node.type) {
    case 'Identifier':
      return [{ name: node.name, isKey: isKey(parent, key) }];
    case 'MemberExpression': {
      const property = node.computed ? literal(node.property)?.value : node.property.name;
      return node.object.type === 'Identifier' ? [{ name: `${node.object.name}.${property}`, isKey: false }] : [];
    }
    case 'NewExpression':
      return isDate(node.callee) && node.arguments.length === 0 ? [{ name: 'new Date()', isKey: false }] : [];
    case 'CallExpression':
      return isDate(node.callee) ? [{ name: 'new Date()', isKey: false }] : [];
    case 'AwaitExpression':
      return [{ name: 'async', isKey: false }];
    case 'ForOfStatement':
      return node.await ? [{ name: 'async', isKey: false }] : [];
    default:
      return node.async === true ? [{ name: 'async', isKey: false }] : [];
  }
}

const isDate = (node) => node.type === 'Identifier' && node.name === 'Date';

/**
 * Whether a name is only a property key, as in `a.process`, `{ process: 1 }` or `interface { process: … }`, and not the global of the
 * same name.
 */
function isKey(parent, key) {
  if (parent === null) return false;
  if (key === 'property') return parent.type === 'MemberExpression' && !parent.computed;
  if (key !== 'key') return key === 'imported' || key === 'exported' || key === 'label';
  return !parent.computed && !parent.shorthand;
}
