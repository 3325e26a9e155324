// How tests run: three projects, each with the time and the parallelism its kind needs.
import { defineConfig } from 'vitest/config';

// Workspace packages resolve to their sources, so a test never sees a stale build.
const conditions = ['source', 'module', 'node', 'development|production'];
const resolve = { conditions };
const ssr = { resolve: { conditions, externalConditions: ['source', 'node'] } };

export default defineConfig({
  test: {
    projects: [
      {
        resolve,
        ssr,
        test: {
          name: 'unit',
          include: ['packages/*/src/**/*.test.ts', 'apps/*/src/**/*.test.ts'],
          testTimeout: 20_000,
          hookTimeout: 20_000,
        },
      },
      {
        resolve,
        ssr,
        test: {
          name: 'system',
          globalSetup: ['tests/global-setup.ts'],
          include: ['tests/{system,chaos,conformance,house,http-differential}/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      {
        resolve,
        ssr,
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
