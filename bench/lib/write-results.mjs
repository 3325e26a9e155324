// Where the figures go: a full run is the record in docs/, anything less lies in the cache and leaves the record alone.
import { existsSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { writeAtomically } from '../../scripts/lib/build-state.mjs';
import { CACHE_DIR, ROOT } from '../../scripts/lib/paths.mjs';
import { renderMarkdown, replaceFigures } from './markdown.mjs';

const RECORD = join(ROOT, 'docs/benchmarks.md');

/**
 * `full`: the record becomes this run. `part`: its scenarios take the place of those in the record.
 * @returns {string[]} the files, as a person names them
 */
export function writeResults(summary, { full, part, json }) {
  const page = full || part ? RECORD : join(CACHE_DIR, 'bench/benchmarks.md');
  const figures = part && !full ? laidOver(recorded(), summary) : summary;
  const text = existsSync(RECORD) ? readFileSync(RECORD, 'utf8') : '# Benchmarks\n';
  writeAtomically(page, full || part ? replaceFigures(text, renderMarkdown(figures)) : renderMarkdown(figures));
  const files = [page, page.replace(/\.md$/, '.json'), ...(json === undefined ? [] : [resolve(json)])];
  for (const file of files.slice(1)) writeAtomically(file, `${JSON.stringify(figures, null, 1)}\n`);
  return files.map((file) => relative(process.cwd(), file));
}

const recorded = () => JSON.parse(readFileSync(RECORD.replace(/\.md$/, '.json'), 'utf8'));

/** The head stays that of the record; each newer scenario says when and on what it was measured. */
function laidOver(record, { date, machine, versions, rounds, scenarios }) {
  const run = { date, loadBefore: machine.loadBefore, rounds, versions };
  const newer = new Map(scenarios.map((scenario) => [scenario.name, { ...scenario, run }]));
  const kept = record.scenarios.map((scenario) => newer.get(scenario.name) ?? scenario);
  const added = [...newer.values()].filter(({ name }) => !record.scenarios.some((scenario) => scenario.name === name));
  return { ...record, scenarios: [...kept, ...added] };
}
