// Writes the figures: a full run becomes the record in docs/, and any other run goes to the cache without changing the record.
import { existsSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { writeAtomically } from '../../scripts/lib/build-state.mjs';
import { CACHE_DIR, ROOT } from '../../scripts/lib/paths.mjs';
import { renderMarkdown, replaceFigures } from './markdown.mjs';

const RECORD = join(ROOT, 'docs/benchmarks.md');

/**
 * With `full`, this run replaces the record. With `part`, its scenarios replace those in the record.
 * @returns {string[]} paths of the files, relative to the working directory
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

/**
 * Merges newer scenarios into the record. The head stays that of the record, and each newer scenario notes the time and conditions of its
 * measurement.
 */
function laidOver(record, { date, machine, versions, rounds, scenarios }) {
  const run = { date, loadBefore: machine.loadBefore, rounds, versions };
  const newer = new Map(scenarios.map((scenario) => [scenario.name, { ...scenario, run }]));
  const kept = record.scenarios.map((scenario) => newer.get(scenario.name) ?? scenario);
  const added = [...newer.values()].filter(({ name }) => !record.scenarios.some((scenario) => scenario.name === name));
  return { ...record, scenarios: [...kept, ...added] };
}
