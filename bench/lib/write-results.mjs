// Writes the figures of a run to the cache.
import { join, relative, resolve } from 'node:path';
import { writeAtomically } from '../../scripts/lib/build-state.mjs';
import { CACHE_DIR } from '../../scripts/lib/paths.mjs';
import { renderMarkdown } from './markdown.mjs';

/** @param {string} [json] an additional file for the figures @returns {string[]} paths of the files, relative to the working directory */
export function writeResults(summary, json) {
  const page = join(CACHE_DIR, 'bench/benchmarks.md');
  const files = [page.replace(/\.md$/, '.json'), ...(json === undefined ? [] : [resolve(json)])];
  writeAtomically(page, renderMarkdown(summary));
  for (const file of files) writeAtomically(file, `${JSON.stringify(summary, null, 1)}\n`);
  return [page, ...files].map((file) => relative(process.cwd(), file));
}
