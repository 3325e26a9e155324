// A TOML file as a layer, with the line of each key.
import { parse, TomlError } from 'smol-toml';
import type { Layer, Tree } from './layer.ts';
import { ConfigProblem } from './problem.ts';
import { readConfigText } from './read-config-text.ts';
import { TomlLines } from './toml-lines.ts';

export const tomlLayer = (file: string): Layer => {
  const text = readConfigText(file);
  const tree = parseToml(file, text);
  const lines = new TomlLines(text);
  return {
    tree,
    where: (path) => `${file}:${lines.lineOf(path)}`,
    line: (path) => lines.lineOf(path),
  };
};

/** The line break that ends the line of a forgotten quote is the control character the parser speaks of. */
const CLEARER: Record<string, string> = {
  'control characters are not allowed in strings': 'a string is not closed, or holds a control character',
};

const parseToml = (file: string, text: string): Tree => {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // The parser's message goes on with the source line, which may hold a secret.
    const [firstLine = ''] = error.message.split('\n');
    const reason = firstLine.replace(/^Invalid TOML document: /, '');
    throw new ConfigProblem('CONFIG_SYNTAX', { file, line: error.line, reason: CLEARER[reason] ?? reason });
  }
};
