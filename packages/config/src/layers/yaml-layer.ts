// A YAML file as a layer, with the line of each key. Apart from TOML: a server reads none, and need not hold the reader.
import { type Document, isMap, isScalar, isSeq, LineCounter, parseDocument, visit, type YAMLError } from 'yaml';
import { type ConfigPath, isTable, type Layer } from './layer.ts';
import { ConfigProblem } from './problem.ts';

/** What a file says, whatever it is, and where. */
interface YamlText {
  /** null: it says nothing. */
  readonly value: unknown;
  line(path: ConfigPath): number;
}

type Refuse = (line: number, reason: string) => ConfigProblem;

/** `text` is what the file says. A table at its top, as config.yml is. */
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

  // A warning is a value that was read as something else than its author thought.
  const [error] = [...document.errors, ...document.warnings];
  if (error !== undefined) throw refuse(lineAt(errorOffset(text, error)), yamlReason(error));
  visit(document, {
    Alias: (_, alias, parents) => {
      const node = alias.resolve(document);
      if (node === undefined) throw refuse(lineAt(alias.range?.[0] ?? 0), 'an alias cannot be resolved');
      // What holds itself has no end.
      if (parents.includes(node)) throw refuse(lineAt(alias.range?.[0] ?? 0), 'an alias refers to itself');
    },
    // The one name that objects do not keep as a key of their own: it would vanish without a word.
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
    // So many aliases that the parser takes them for an attack.
    throw refuse(1, 'too many aliases');
  }
};

/** The parser's messages of these kinds repeat nothing of the text they met, which may be a secret. */
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

/** A quote that is never closed is noticed at the end of the text; the last words before that tell more. */
const errorOffset = (text: string, error: YAMLError): number =>
  error.code === 'MISSING_CHAR' ? text.slice(0, error.pos[0]).trimEnd().length : error.pos[0];

/** Where the key at the path begins; of a missing key, where its nearest table begins. */
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
