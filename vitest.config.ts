// How tests run: four projects, each with the time and the parallelism its kind needs.
import { defineConfig } from 'vitest/config';

// Workspace packages resolve to their sources, so a test never sees a stale build.
const conditions = ['source', 'module', 'node', 'development|production'];
const resolve = { conditions };
const ssr = { resolve: { conditions, externalConditions: ['source', 'node'] } };
// Where vitest runs a global setup; it does not take the conditions from above.
const environments = { __vitest__: { resolve: { conditions } } };

// Those that createTestDatabase() serves: a PostgreSQL is started for them once a run.
const DATABASE_TESTS = ['apps/*/src/**/*.db.test.ts', 'tests/**/*.db.test.ts'];

// Theirs is a second, which a busy machine may take for a breath.
const poll = { timeout: 15_000 };

// Files share the modules of their worker: loading them anew for each file took as long as the tests.
const SHARED = false;

export default defineConfig({
  test: {
    projects: [
      {
        resolve,
        ssr,
        test: {
          name: 'unit',
          include: ['packages/*/src/**/*.test.ts', 'apps/*/src/**/*.test.ts'],
          exclude: DATABASE_TESTS,
          isolate: SHARED,
          expect: { poll },
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        resolve,
        ssr,
        environments,
        test: {
          name: 'database',
          globalSetup: ['tests/database-setup.ts'],
          include: DATABASE_TESTS,
          isolate: SHARED,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        resolve,
        ssr,
        environments,
        test: {
          name: 'system',
          globalSetup: ['tests/global-setup.ts'],
          include: ['tests/{system,chaos,conformance,house,http-differential}/**/*.test.ts'],
          exclude: DATABASE_TESTS,
          isolate: SHARED,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        resolve,
        ssr,
        environments,
        test: {
          name: 'soak',
          globalSetup: ['tests/global-setup.ts'],
          include: ['tests/soak/**/*.test.ts'],
          testTimeout: 15 * 60_000,
          hookTimeout: 120_000,
        },
      },
    ],
    maxWorkers: 2,
    passWithNoTests: true,
  },
});
