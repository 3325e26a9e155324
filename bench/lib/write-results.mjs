// Where the figures go: a full run is the record in docs/, anything less lies in the cache and leaves the record alone.
import { existsSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { writeAtomically } from '../../scripts/lib/build-state.mjs';
import { CACHE_DIR, ROOT } from '../../scripts/lib/paths.mjs';
import { renderMarkdown, replaceFigures } from './markdown.mjs';

const RECORD = join(ROOT, 'docs/benchmarks.md');

/** @returns {string[]} the files, as a person names them */
export function writeResults(summary, { full, json }) {
  const page = full ? RECORD : join(CACHE_DIR, 'bench/benchmarks.md');
  const text = existsSync(RECORD) ? readFileSync(RECORD, 'utf8') : '# Benchmarks\n';
  writeAtomically(page, full ? replaceFigures(text, renderMarkdown(summary)) : renderMarkdown(summary));
  const files = [page, page.replace(/\.md$/, '.json'), ...(json === undefined ? [] : [resolve(json)])];
  for (const file of files.slice(1)) writeAtomically(file, `${JSON.stringify(summary, null, 1)}\n`);
  return files.map((file) => relative(process.cwd(), file));
}
