// Two versions beside each other: npm run try:skew
// Builds the previous release (release/previous.json) into .cache, and runs it with this checkout in every pairing of client, edge and
// platform, on one database, on one data directory, and through an upgrade under load.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE_DIR, ROOT } from '../../../scripts/lib/paths.mjs';
import { runScript } from '../lib/script.mjs';
import { current, makeNewer, makePrevious, missingForPrevious } from './lib/make-builds.mjs';

const USAGE = `usage: npm run try:skew [-- --pairings] [--database] [--in-place] [--rolling]
Builds the previous release into .cache, and tries it with this checkout. Without flags, all four parts run: 20 minutes on two cores, and
five more for the first build.
  --pairings  client with edge, and edge with platform, each old and new, with traffic of every kind
  --database  two platforms of different versions on one database
  --in-place  upgrade of a stack on its data directory, and the way back
  --rolling   upgrade of platform, edge and clients in turn, under load`;

const PARTS = ['pairings', 'database', 'in-place', 'rolling'];

/** The version after this checkout, and the version before the next release. Both are newer than this checkout. */
const versionAfter = (version) =>
  version.replace(/^(\d+)\.(\d+)\..*$/, (_, major, minor) => `${major}.${Number(minor) + 1}.0`);

function runSuites(names, builds) {
  const report = join(CACHE_DIR, 'skew/report.json');
  mkdirSync(join(CACHE_DIR, 'skew'), { recursive: true });
  rmSync(report, { force: true });
  const file = join(CACHE_DIR, 'skew/builds.json');
  writeFileSync(file, JSON.stringify(builds));
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'tests/tools/skew/vitest.config.ts', ...names];
  const reporters = ['--reporter=verbose', '--reporter=json', `--outputFile.json=${report}`];
  spawnSync(process.execPath, [...args, ...reporters], {
    cwd: ROOT,
    stdio: ['ignore', 2, 2],
    env: { ...process.env, SKEW_BUILDS: file },
  });
  if (!existsSync(report)) throw new Error('the suites did not finish');
  return JSON.parse(readFileSync(report, 'utf8')).testResults.flatMap(({ assertionResults, message }) =>
    assertionResults.length > 0 ? assertionResults : [{ status: 'failed', fullName: message.split('\n')[0] }],
  );
}

async function main({ values, say, check }) {
  const chosen = PARTS.filter((part) => values[part]);
  const previous = await makePrevious(say);
  const own = current();
  const after = versionAfter(own.version);
  const builds = {
    previous,
    current: own,
    allowing: await makeNewer({ name: 'allowing', version: after, oldestVersion: own.version }),
    excluding: await makeNewer({ name: 'excluding', version: after, oldestVersion: after }),
  };
  const programs = Object.values(builds).map(({ version, server }) => [version, server]);
  for (const [version, program] of [...programs, [previous.version, previous.client], [own.version, own.client]]) {
    const said = spawnSync(process.execPath, [program, '--version'], { encoding: 'utf8' }).stdout.trim();
    if (said !== version) throw new Error(`${program} has version ${said} instead of ${version}`);
  }
  say(`${previous.version} beside ${own.version}, and ${after} with made-up migrations`);
  const rows = runSuites(
    (chosen.length === 0 ? PARTS : chosen).map((part) => `${part}-suite`),
    builds,
  );
  for (const { status, fullName } of rows) {
    process.stdout.write(`${status === 'passed' ? 'ok' : 'FAILED'}: ${fullName}\n`);
    if (status !== 'passed') check(false, fullName);
  }
  return `${rows.length} rows with ${previous.version} and ${own.version}`;
}

const reason = missingForPrevious();
if (reason === null) {
  const options = Object.fromEntries(PARTS.map((part) => [part, false]));
  await runScript({ name: 'try:skew', usage: USAGE, options, limitSecs: () => 5400 }, main);
} else console.log(`skipped: ${reason}`);
