// One hash over many files: their names and what is in them.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { ROOT } from './paths.mjs';

/** Those that are not there are left out. */
export function hashFiles(files) {
  const hash = createHash('sha256');
  for (const file of files) {
    if (existsSync(file)) hash.update(relative(ROOT, file)).update('\0').update(readFileSync(file)).update('\0');
  }
  return hash.digest('hex');
}

/** Tests change nothing of what is built. */
export const isNoTest = (file) => !/\.(?:test|conformance)\.tsx?$/.test(file);
