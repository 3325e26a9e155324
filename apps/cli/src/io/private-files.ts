// Files with secrets: readable only by their owner, and never visible in a half-written state.
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { Fault } from '@tunnel/errors';
import { writeAtomicSync } from '@tunnel/runtime';

export interface WriteOptions {
  /** Mode of the file. Default: accessible only to the owner. */
  readonly mode?: number;
}

export const writePrivateFile = (file: string, text: string, options: WriteOptions = {}): void => {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeAtomicSync(file, text, { ...options, flush: true });
  } catch (error) {
    throw fileFault(file, error);
  }
};

export const fileFault = (file: string, error: unknown): Fault => {
  const { code, message } = error as NodeJS.ErrnoException;
  return new Fault('CLIENT_FILE', { file, reason: REASONS[code ?? ''] ?? code ?? message }, { cause: error });
};

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EISDIR: 'the path is a folder',
  ENOTDIR: 'part of the path is not a folder',
  EEXIST: 'part of the path is not a folder',
};
