// The names of the tunnels in a config.yml, whatever else is right or wrong in it: for completion, which has to be quick and says nothing.
// Apart from the schema: loading that takes longer than all of this. Line by line where the file is written as most are: thousands of
// tunnels as YAML take seconds.
import { readFileSync, statSync } from 'node:fs';
import { isMap, isScalar, parseDocument } from 'yaml';

const FILE_MAX_BYTES = 4 * 1024 * 1024;
/** What has another form is read as YAML, as long as that does not hold up whoever pressed Tab. */
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
/** `  name:`, `  "name":`, `  'name':`, and what follows. */
const ENTRY =
  /^ +(?:("(?:[^"\\]|\\.)*")|'((?:[^']|'')*)'|([\p{L}_][^"'#&*!|>{}[\]]*?)|([1-9]\d{0,14}))[ \t]*:(?:[ \t]|$)/u;
/** Plain words that YAML takes for something else than text. */
const NO_TEXT = /^(?:true|false|null)$/i;

/** null: not one below the other, or with a key that takes a parser. */
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
  // Escapes that JSON knows are the same in YAML; it has others.
  if (double !== undefined) return /\\[^"\\/bfnrtu]/.test(double) ? null : (JSON.parse(double) as string);
  if (single !== undefined) return single.replaceAll("''", "'");
  if (plain !== undefined) return NO_TEXT.test(plain) ? null : plain;
  return whole ?? null;
};
