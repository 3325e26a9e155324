// Configuration for `npm run try:skew`: packages resolve to their sources like in the other tests, and only the suites of skew run.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const conditions = ['source', 'module', 'node', 'development|production'];

export default defineConfig({
  root: fileURLToPath(new URL('../../..', import.meta.url)),
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ['source', 'node'] } },
  test: {
    include: ['tests/tools/skew/lib/*-suite.ts'],
    testTimeout: 600_000,
    hookTimeout: 120_000,
    // Each test starts several servers and clients, so they take turns.
    fileParallelism: false,
    experimental: { fsModuleCache: true, fsModuleCachePath: '.cache/vitest-modules' },
  },
});
