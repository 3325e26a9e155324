// A TOML file as a config layer, with the line of each key; and a reader for the text of any config file.
import { parse, TomlError } from 'smol-toml';
import { readBounded } from './bounded-file.ts';
import type { Layer, Tree } from './layer.ts';
import { ConfigProblem } from './problem.ts';
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

/**
 * Clearer words for messages of the TOML parser. If a closing quote is missing, the parser complains about the control character that
 * ends the line.
 */
const CLEARER: Record<string, string> = {
  'control characters are not allowed in strings': 'a string is not closed or contains a control character',
};

const parseToml = (file: string, text: string): Tree => {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // The parser's message also contains the source line, which may hold a secret. Only the first line of the message is used.
    const [firstLine = ''] = error.message.split('\n');
    const reason = firstLine.replace(/^Invalid TOML document: /, '');
    throw new ConfigProblem('CONFIG_SYNTAX', { file, line: error.line, reason: CLEARER[reason] ?? reason });
  }
};

/** Maximum size of a config file. Config files are written by hand, so a larger file is surely not a config file. */
const MOST_BYTES = 1024 * 1024;

const REASONS: Record<string, string> = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of the path is not a directory',
  ELOOP: 'too many symbolic links',
  ENAMETOOLONG: 'the name is too long',
};

export const readConfigText = (file: string): string => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readBounded(file, MOST_BYTES));
  } catch (error) {
    throw new ConfigProblem('CONFIG_FILE_UNREADABLE', { file, reason: readFailure(error) });
  }
};

export const readFailure = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return 'it is not UTF-8 text';
  return (code === undefined ? undefined : REASONS[code]) ?? error.message;
};
