// The record of a run: its rounds as measured. The last run is kept in .cache/bench, and `--add` continues it.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashInputs, writeAtomically } from '../../scripts/lib/build-state.mjs';
import { CACHE_DIR, ROOT } from '../../scripts/lib/paths.mjs';
import { renderPage } from './page.mjs';
import { renderPicture } from './picture.mjs';

const FORMAT = 1;
const DOCS = join(ROOT, 'docs');
const CACHE = join(CACHE_DIR, 'bench');
const NAME = 'benchmarks-peers';
const LAST = join(CACHE, `${NAME}.json`);

/** Returns the id of the measured build. Two runs must have the same id to be combined. */
export const buildId = () => hashInputs().slice(0, 16);

/** @returns {object} the record, with the rounds of `earlier` first if it is not null */
export function joinRecords(earlier, record) {
  if (earlier === null) return record;
  const why = whyApart(earlier, record);
  if (why !== null) throw new Error(`--add: the last run was of another ${why}`);
  const names = [...new Set([...earlier.rows, ...record.rows].map(({ name }) => name))];
  const roundsOf = ({ rows }, name) => rows.find((row) => row.name === name)?.rounds ?? [];
  return {
    ...record,
    commands: [...new Set([...earlier.commands, ...record.commands])],
    missing: [...new Set([...earlier.missing, ...record.missing])],
    runtimes: record.runtimes.length >= earlier.runtimes.length ? record.runtimes : earlier.runtimes,
    paths: { ...earlier.paths, ...record.paths },
    rows: names.map((name) => ({ name, rounds: [...roundsOf(earlier, name), ...roundsOf(record, name)] })),
    failures: [...earlier.failures, ...record.failures],
  };
}

/** Returns why two runs cannot be combined, or null if they can. */
function whyApart(earlier, record) {
  const machine = ({ machine: { model, cores, kernel } }) => [model, cores, kernel].join();
  const differing = {
    format: earlier.format !== record.format,
    build: earlier.build !== record.build,
    machine: machine(earlier) !== machine(record),
    length: earlier.seconds !== record.seconds || earlier.quick !== record.quick,
    'first runtime': earlier.runtimes[0].version !== record.runtimes[0].version,
  };
  return Object.keys(differing).find((what) => differing[what]) ?? null;
}

export const lastRecord = () => (existsSync(LAST) ? JSON.parse(readFileSync(LAST, 'utf8')) : null);

/** @param {object} run fields other than `format` and `rows`; @param {object[]} results of runRounds */
export const makeRecord = (run, results) => ({
  format: FORMAT,
  ...run,
  rows: results.map(({ scenario, rounds }) => ({ name: scenario.name, rounds: rounds.map(roundFigures) })),
});

/** Rounds figures to six digits, more than a clock of 10 ms can resolve. */
const roundFigures = (round) =>
  Object.fromEntries(
    Object.entries(round).map(([path, figures]) => [
      path,
      Object.fromEntries(
        Object.entries(figures)
          .filter(([, value]) => Number.isFinite(value))
          .map(([key, value]) => [key, Number(value.toPrecision(6))]),
      ),
    ]),
  );

/** Whether each of the paths was measured, or failed, in each row that includes it. */
export const isWhole = (record, rows, paths) =>
  !record.quick &&
  rows.every(({ name, takes }) => {
    const measured = record.rows.find((row) => row.name === name)?.rounds ?? [];
    const failed = record.failures.filter(({ row }) => row === name).map(({ path }) => path);
    return paths
      .filter(takes)
      .every((path) => measured.some((round) => round[path.name]) || failed.includes(path.name));
  });

const textOf = (record) => `${JSON.stringify(record, null, 1)}\n`;

/** Stores the record for a later `--add`. */
export const keepRecord = (record) => writeAtomically(LAST, textOf(record));

/** @returns {string[]} paths of the written files */
export function writeRecord(record, { whole }) {
  keepRecord(record);
  if (whole) writeAtomically(join(DOCS, `${NAME}.json`), textOf(record));
  return [join(whole ? DOCS : CACHE, `${NAME}.json`), ...render(record, whole ? DOCS : CACHE)];
}

/** Renders page and picture in docs/ from the record there. */
export const renderDocs = () => render(JSON.parse(readFileSync(join(DOCS, `${NAME}.json`), 'utf8')), DOCS);

function render(record, folder) {
  const [page, picture] = ['md', 'svg'].map((ending) => join(folder, `${NAME}.${ending}`));
  writeAtomically(page, renderPage(record));
  writeAtomically(picture, renderPicture(record));
  return [page, picture];
}
