// Lists the branches of the product that the tests take, in the test processes and in the programs started by the tests.
// usage: npm run test:coverage -- [--out FILE] [--workers N] [--project P]... [TEST]...    writes a record: every branch, covered or not, with tests that take the branch
//        npm run test:coverage -- --compare OLD NEW                                        lists branches that are covered in OLD and no longer in NEW
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { compareRecords } from './lib/coverage/compare.mjs';
import { BranchRecord } from './lib/coverage/digest.mjs';
import { CACHE_DIR, ROOT } from './lib/paths.mjs';

const PROVIDER = fileURLToPath(new URL('lib/coverage/provider.mjs', import.meta.url));
/** Folder for raw counts. Raw counts need gigabytes and are deleted after processing. */
const RAW = join(CACHE_DIR, 'coverage');
/** Vitest projects, measured in sequence. Browser tests are excluded, because their programs start in a different way. */
const PROJECTS = ['unit', 'slow', 'database', 'system', 'slow-system', 'repo'];
/** Timeout per test. Programs run slower while branches are counted. */
const TEST_TIMEOUT_MS = 240_000;

const { values, positionals } = parseArgs({
  options: {
    out: { type: 'string', default: join(CACHE_DIR, 'coverage.json') },
    workers: { type: 'string', default: '2' },
    project: { type: 'string', multiple: true, default: PROJECTS },
    compare: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});

function measure(tests) {
  const record = new BranchRecord();
  let failures = 0;
  for (const project of values.project) {
    const dir = join(RAW, project);
    rmSync(dir, { recursive: true, force: true });
    for (const folder of ['scripts', 'counts', 'children', 'pids']) mkdirSync(join(dir, folder), { recursive: true });
    if (run(project, dir, tests) !== 0) failures++;
    record.addFolder(dir);
    rmSync(dir, { recursive: true, force: true });
  }
  const result = record.toJson();
  mkdirSync(dirname(resolve(values.out)), { recursive: true });
  writeFileSync(values.out, `${linesOf(result)}\n`);
  const covered = result.branches.filter((branch) => branch.covered).length;
  process.stdout.write(`${covered} of ${result.branches.length} branches are covered: ${values.out}\n`);
  if (failures > 0) process.stdout.write('Tests failed: branches that only they take may be missing.\n');
  return failures > 0 ? 1 : 0;
}

function run(project, dir, tests) {
  const args = [
    join(ROOT, 'node_modules/vitest/vitest.mjs'),
    ...['run', '--project', project, '--retry=1', `--maxWorkers=${values.workers}`],
    ...[`--testTimeout=${TEST_TIMEOUT_MS}`, `--hookTimeout=${TEST_TIMEOUT_MS}`],
    ...['--coverage.enabled', '--coverage.provider=custom', `--coverage.customProviderModule=${PROVIDER}`],
    ...tests,
  ];
  const env = { ...process.env, COVERAGE_DIR: dir };
  return spawnSync(process.execPath, args, { cwd: ROOT, env, stdio: 'inherit' }).status ?? 1;
}

/** Formats a record with a line per branch, so that records can be searched. */
const linesOf = ({ branches, ...rest }) =>
  `{${JSON.stringify(rest).slice(1, -1)},"branches":[\n${branches.map((branch) => JSON.stringify(branch)).join(',\n')}\n]}`;

function compare(files) {
  const [old, now] = files.map((file) => JSON.parse(readFileSync(file, 'utf8')));
  const { lost, open } = compareRecords(old, now);
  const say = ({ file, line, text }) => process.stdout.write(`  ${file}:${line}  ${text}\n`);
  process.stdout.write(`${lost.length} branches are no longer covered (with tests that took them):\n`);
  for (const branch of lost) say({ ...branch, text: `${branch.text}  (${branch.tests.join(', ')})` });
  process.stdout.write(`${open.length} branches of new or changed code are not covered:\n`);
  for (const branch of open) say(branch);
  return lost.length > 0 ? 1 : 0;
}

process.exitCode = values.compare ? compare(positionals) : measure(positionals);
