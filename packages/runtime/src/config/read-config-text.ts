// Reads a config file as text, or refuses with a reason a person understands.
import { readFileSync, statSync } from 'node:fs';
import { ConfigProblem } from './problem.ts';

/** A config file is written by hand; anything beyond this is some other file. */
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
    if (statSync(file).size > MOST_BYTES) throw new Error(`it is larger than ${MOST_BYTES} bytes`);
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file));
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
