// Runs the database tests through Debian's PgBouncer in transaction mode: npm run try:pgbouncer -- [FILE…]
// Without pgbouncer, the script prints a message and ends.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DATABASE_AND_SCHEMA } from '../../../scripts/lib/steps.mjs';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const FOLDER = join(ROOT, '.cache/pgbouncer');

/** Debian installs pgbouncer in /usr/sbin, which may be missing in a user's PATH. */
const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin'];
const program = folders.map((folder) => join(folder, 'pgbouncer')).find((file) => existsSync(file));

const runTests = () => {
  mkdirSync(FOLDER, { recursive: true });
  const report = join(FOLDER, 'report.json');
  rmSync(report, { force: true });
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  console.log(`${stdout.split('\n')[0]}, pool_mode = transaction`);
  const files = process.argv.slice(2);
  const tests =
    files.length > 0 ? ['--project', 'database', '--project', 'slow-system', ...files] : DATABASE_AND_SCHEMA;
  const args = ['node_modules/vitest/vitest.mjs', 'run', ...tests];
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const env = { ...process.env, TEST_PGBOUNCER: program };
  const { status } = spawnSync(process.execPath, [...args, ...reporters], { cwd: ROOT, stdio: 'inherit', env });
  if (!existsSync(report)) return { passed: 0, failed: 1 };
  const { numPassedTests: passed, numFailedTests: failed } = JSON.parse(readFileSync(report, 'utf8'));
  return { passed, failed: status === 0 ? failed : Math.max(1, failed) };
};

if (program === undefined) console.log('skipped: pgbouncer is not installed (Debian: apt install pgbouncer)');
const { passed, failed } = program === undefined ? { passed: 0, failed: 0 } : runTests();
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
