// A YAML file as a config layer, with the line of each key. Separate from the TOML layer, so that a server, which reads no YAML, does not
// load the YAML parser.
import { type Document, isMap, isScalar, isSeq, LineCounter, parseDocument, visit, type YAMLError } from 'yaml';
import { type ConfigPath, isTable, type Layer } from './layer.ts';
import { ConfigProblem } from './problem.ts';

/** Contents of a YAML file, of any type, and the line of each key. */
interface YamlText {
  /** Value of the YAML document. Null if the file is empty. */
  readonly value: unknown;
  line(path: ConfigPath): number;
}

type Refuse = (line: number, reason: string) => ConfigProblem;

/**
 * Makes a layer from `text`, the contents of a YAML file such as config.yml. Throws a ConfigProblem unless the top level is a table or
 * the file is empty.
 */
export const yamlLayer = (file: string, text: string): Layer => {
  const { value, line } = readYaml(file, text);
  if (value !== null && !isTable(value)) {
    throw new ConfigProblem('CONFIG_SYNTAX', { file, line: 1, reason: 'the file must be a table of keys and values' });
  }
  return { tree: value ?? {}, where: (path) => `${file}:${line(path)}`, line };
};

export const readYaml = (file: string, text: string): YamlText => {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false, logLevel: 'error' });
  const lineAt = (offset: number): number => Math.max(1, lineCounter.linePos(offset).line);
  const refuse: Refuse = (line, reason) => new ConfigProblem('CONFIG_SYNTAX', { file, line, reason });

  // Warnings count as errors: a warning means that the parser read a value differently than its author intended.
  const [error] = [...document.errors, ...document.warnings];
  if (error !== undefined) throw refuse(lineAt(errorOffset(text, error)), yamlReason(error));
  visit(document, {
    Alias: (_, alias, parents) => {
      const node = alias.resolve(document);
      if (node === undefined) throw refuse(lineAt(alias.range?.[0] ?? 0), 'an alias cannot be resolved');
      // Rejects an alias inside its own anchor: the value would be infinite.
      if (parents.includes(node)) throw refuse(lineAt(alias.range?.[0] ?? 0), 'an alias refers to itself');
    },
    // Rejects the key __proto__: objects do not store a property of this name, so the entry would vanish silently.
    Pair: (_, { key }) => {
      if (isScalar(key) && key.value === '__proto__')
        throw refuse(lineAt(key.range?.[0] ?? 0), '`__proto__` cannot be a name');
    },
  });
  return { value: toValue(document, refuse), line: (path) => lineAt(offsetOf(document, path)) };
};

const toValue = (document: Document, refuse: Refuse): unknown => {
  try {
    return (document.toJS() as unknown) ?? null;
  } catch {
    // The parser throws if a document has so many aliases that the document looks like an attack.
    throw refuse(1, 'too many aliases');
  }
};

/** Error codes of the YAML parser with messages that never quote the source text, which may be a secret. */
const PLAIN_REASONS = new Set<string>([
  'BAD_INDENT',
  'BAD_SCALAR_START',
  'BLOCK_AS_IMPLICIT_KEY',
  'BLOCK_IN_FLOW',
  'DUPLICATE_KEY',
  'MISSING_CHAR',
  'MULTILINE_IMPLICIT_KEY',
  'TAB_AS_INDENT',
]);

const yamlReason = ({ code, message }: YAMLError): string => {
  if (code === 'TAG_RESOLVE_FAILED') return 'text that starts with ! needs quotes';
  if (code === 'MULTIPLE_DOCS') return 'a second document starts here, but the file can have only one';
  return PLAIN_REASONS.has(code) ? message.replace(/\s+/g, ' ') : 'unexpected text';
};

/**
 * Returns the position of a YAML error. The parser reports a missing closing quote at the end of the text; the end of the last words
 * before that position is more helpful.
 */
const errorOffset = (text: string, error: YAMLError): number =>
  error.code === 'MISSING_CHAR' ? text.slice(0, error.pos[0]).trimEnd().length : error.pos[0];

/** Returns the offset of the key at a path. For a missing key, returns the offset of the nearest enclosing table. */
const offsetOf = (document: Document, path: ConfigPath): number => {
  let node: unknown = document.contents;
  let offset = 0;
  for (const key of path) {
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === String(key));
      if (pair === undefined || !isScalar(pair.key)) return offset;
      offset = pair.key.range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(key)];
      offset = isScalar(node) || isMap(node) ? (node.range?.[0] ?? offset) : offset;
    } else return offset;
  }
  return offset;
};
