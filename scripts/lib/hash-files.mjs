// Computes a single hash of many files, from names and contents.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { ROOT } from './paths.mjs';

/** Hashes files. Missing files are skipped. */
export function hashFiles(files) {
  const hash = createHash('sha256');
  for (const file of files) {
    if (existsSync(file)) hash.update(relative(ROOT, file)).update('\0').update(readFileSync(file)).update('\0');
  }
  return hash.digest('hex');
}

/** Whether a file is not a test. Tests do not affect builds. */
export const isNoTest = (file) => !/\.(?:test|conformance)\.tsx?$/.test(file);
