// Reads the names of the tunnels in a config.yml for shell completion, which must be quick and must not print errors; mistakes elsewhere
// in the file do not matter. Does not import the config schema, because loading the schema takes longer than reading the names. A file in
// the common form is read line by line, because parsing thousands of tunnels as YAML takes seconds.
import { readFileSync, statSync } from 'node:fs';
import { isMap, isScalar, parseDocument } from 'yaml';

const FILE_MAX_BYTES = 4 * 1024 * 1024;
/**
 * Maximum length of a file that is parsed as YAML because its form is uncommon. A longer file yields no names, so that pressing Tab
 * causes no noticeable delay.
 */
const YAML_MAX_CHARS = 64 * 1024;

export const tunnelNames = (file: string): string[] => {
  try {
    const found = statSync(file);
    if (!found.isFile() || found.size > FILE_MAX_BYTES) return [];
    const text = readFileSync(file, 'utf8');
    return namesByLine(text) ?? (text.length > YAML_MAX_CHARS ? [] : namesByYaml(text));
  } catch {
    return [];
  }
};

const namesByYaml = (text: string): string[] => {
  const tunnels = parseDocument(text, { logLevel: 'silent' }).get('tunnels');
  if (!isMap(tunnels)) return [];
  return tunnels.items.flatMap(({ key }) => (isScalar(key) ? [String(key.value)] : []));
};

const TUNNELS = /^tunnels[ \t]*:[ \t]*(#.*)?$/;
/** Matches a line that begins a tunnel entry: ` name:`, ` "name":` or ` 'name':`, and any text after the colon. */
const ENTRY =
  /^ +(?:("(?:[^"\\]|\\.)*")|'((?:[^']|'')*)'|([\p{L}_][^"'#&*!|>{}[\]]*?)|([1-9]\d{0,14}))[ \t]*:(?:[ \t]|$)/u;
/** Unquoted words that YAML does not read as text. */
const NO_TEXT = /^(?:true|false|null)$/i;

/**
 * Reads the tunnel names without a YAML parser. Returns null if the file needs a parser: the tunnels are not a plain list of keys below
 * `tunnels`, or a key has a complex form.
 */
const namesByLine = (text: string): string[] | null => {
  const lines = text.split(/\r?\n/);
  const at = lines.findIndex((line) => TUNNELS.test(line));
  if (at < 0) return null;
  const names: string[] = [];
  let margin = -1;
  for (const line of lines.slice(at + 1)) {
    const indent = line.search(/[^ ]/);
    if (indent < 0 || line[indent] === '#') continue;
    if (indent === 0) break;
    if (margin < 0) margin = indent;
    if (indent > margin) continue;
    const name = indent < margin ? null : nameOf(line);
    if (name === null) return null;
    names.push(name);
  }
  return names.length === 0 ? null : names;
};

const nameOf = (line: string): string | null => {
  const [, double, single, plain, whole] = ENTRY.exec(line) ?? [];
  // The escapes of JSON mean the same in YAML, but YAML has more escapes. A name with such an escape needs the YAML parser.
  if (double !== undefined) return /\\[^"\\/bfnrtu]/.test(double) ? null : (JSON.parse(double) as string);
  if (single !== undefined) return single.replaceAll("''", "'");
  if (plain !== undefined) return NO_TEXT.test(plain) ? null : plain;
  return whole ?? null;
};
