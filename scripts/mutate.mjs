// Injects small faults into a copy of the product, one at a time, and reports the faults that the tests find.
// usage: node scripts/mutate.mjs [--seed N] [--count 60] [--seconds 60] [--out FILE] [--replay FILE]
// Each fault is judged by the tests that import the broken file, for at most --seconds (corrected for a busy machine). --replay repeats the
// faults of an earlier run, which are found by the text of their lines, so that two versions of the tests can be compared.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ImportGraph, packageEntries, readSources } from './lib/import-graph.mjs';
import { mutate, mutationsOf } from './lib/mutation/mutations.mjs';
import { Scratch } from './lib/mutation/scratch.mjs';
import { CACHE_DIR, filesBelow, ROOT } from './lib/paths.mjs';

const FOLDERS = [
  'apps/edge/src',
  'packages/rules/src',
  'packages/http1/src',
  'packages/policy/src',
  'packages/protocol/src',
  'packages/mux/src',
  'apps/platform/src/services',
];
/** Test stages, run in sequence: a fault found by unit tests needs no database and no build. */
const STAGES = [
  (test) => /^(?:packages|apps)\//.test(test) && !/\.(?:slow|db)\.test\.ts$/.test(test),
  (test) => test.endsWith('.db.test.ts') || /^(?:packages|apps)\/.*\.slow\.test\.ts$/.test(test),
  (test) => /^tests\/(?!browser|soak|tools)/.test(test) && !/\.(?:db|load|long)\.test\.ts$/.test(test),
];

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    count: { type: 'string', default: '60' },
    seconds: { type: 'string', default: '60' },
    out: { type: 'string', default: join(CACHE_DIR, 'mutations.json') },
    replay: { type: 'string' },
  },
});
const limitMs = Number(values.seconds) * 1000;

const productFiles = FOLDERS.flatMap((dir) => filesBelow(join(ROOT, dir)))
  .map((file) => relative(ROOT, file))
  .filter((file) => file.endsWith('.ts') && !/\.(?:test|fixture|conformance)\.ts$/.test(file));

/** Makes a generator of numbers from 0 to 1, which are the same for the same seed (mulberry32). */
function numbersFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Chooses mutations. Every line of the product has the same chance; lines without a possible mutation are skipped. */
function choose(seed, count) {
  const random = numbersFrom(seed);
  const pick = (list) => list[Math.floor(random() * list.length)];
  const all = new Map(productFiles.map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]));
  const lines = [...all].flatMap(([file, source]) => source.split('\n').map((_, at) => ({ file, line: at + 1 })));
  const chosen = new Map();
  while (chosen.size < count) {
    const { file, line } = pick(lines);
    const one = pick(mutationsOf(file, all.get(file)).filter((mutation) => mutation.line === line));
    if (one) chosen.set(`${file} ${line} ${one.from} ${one.replacement}`, { file, ...one });
  }
  return [...chosen.values()];
}

/** Finds the current location of a line from an earlier run: the same file, or a file to which the line has moved. */
function findAgain(mutation) {
  const candidates = [mutation.file, ...productFiles.filter((file) => file !== mutation.file)];
  const holds = (file) =>
    productFiles.includes(file) && mutate(readFileSync(join(ROOT, file), 'utf8'), mutation) !== undefined;
  const [same, ...others] = candidates;
  if (holds(same)) return same;
  return (
    others.find((file) => basename(file) === basename(same) && holds(file)) ??
    others.find((file) => mutation.text.length > 30 && holds(file))
  );
}

const scratch = new Scratch();
const graph = new ImportGraph(readSources(), packageEntries());
const quietTimes = new Map();

/** Runs the test stages for a file with the given text. The time limit applies to all stages together. */
function judge(file, text) {
  return scratch.withText(file, text, async () => {
    // Runs the nearest tests first, because near tests find a fault soonest.
    const tests = [...graph.reachedFrom([file]).keys()].filter((path) => path.endsWith('.test.ts'));
    let spentMs = 0;
    for (const stage of STAGES.map((isIn) => tests.filter(isIn)).filter(({ length }) => length > 0)) {
      const { outcome, by, ms } = await scratch.judge(file, stage, limitMs - spentMs);
      spentMs += ms;
      if (outcome !== 'passed') return { outcome, by, ms: spentMs };
    }
    return { outcome: 'passed', ms: spentMs };
  });
}

/** Whether a fault makes the tests hang, which counts as found. Tests that take just as long without the fault do not count. */
async function isHang(file) {
  if (!quietTimes.has(file)) quietTimes.set(file, (await judge(file, scratch.read(file))).ms);
  return quietTimes.get(file) < limitMs / 2;
}

async function verdictOn(mutation) {
  const file = findAgain(mutation);
  if (!file) return { verdict: 'gone' };
  const { outcome, by, ms } = await judge(file, mutate(scratch.read(file), mutation));
  const seconds = Math.round(ms / 1000);
  if (outcome === 'failed') return { verdict: 'caught', by, seconds };
  if (outcome === 'late' && (await isHang(file))) return { verdict: 'caught', by: 'tests that no longer end', seconds };
  return { verdict: outcome === 'late' ? 'survived, out of time' : 'survived', seconds };
}

const earlier = values.replay ? JSON.parse(readFileSync(values.replay, 'utf8')) : undefined;
const seed = earlier?.seed ?? Number(values.seed ?? Math.floor(Math.random() * 1e9));
process.stdout.write(`seed ${seed}\n`);
const mutations = earlier
  ? earlier.results.map(({ verdict: _verdict, by: _by, seconds: _seconds, ...mutation }) => mutation)
  : choose(seed, Number(values.count));

const results = [];
const count = (verdict) => results.filter((one) => one.verdict.startsWith(verdict)).length;
mkdirSync(dirname(resolve(values.out)), { recursive: true });
for (const mutation of mutations) {
  const result = { ...mutation, ...(await verdictOn(mutation)) };
  results.push(result);
  const { file, line, text, from, to, replacement, verdict, by, seconds } = result;
  const shown = `${text.slice(0, from)}[${text.slice(from, to)} → ${replacement}]${text.slice(to)}`;
  process.stdout.write(
    `${results.length}/${mutations.length} ${verdict} ${seconds ?? 0} s  ${file}:${line}  ${shown}${by ? `\n      ${by}` : ''}\n`,
  );
  const summary = { seed, caught: count('caught'), survived: count('survived'), gone: count('gone'), results };
  writeFileSync(values.out, `${JSON.stringify(summary, null, 2)}\n`);
}
process.stdout.write(
  `${count('caught')} caught, ${count('survived')} survived, ${count('gone')} gone; seed ${seed}: ${values.out}\n`,
);
