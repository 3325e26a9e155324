// Configuration for `npm run try:acme`: packages resolve to their sources like in the other tests, and only the suites for pebble run.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const conditions = ['source', 'module', 'node', 'development|production'];

export default defineConfig({
  root: fileURLToPath(new URL('../../..', import.meta.url)),
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ['source', 'node'] } },
  test: {
    include: ['tests/tools/acme/lib/*-suite.ts'],
    testTimeout: 120_000,
    hookTimeout: 60_000,
    // Module cache for the three runs of `npm run try:acme`, which load the same sources.
    experimental: { fsModuleCache: true, fsModuleCachePath: '.cache/vitest-modules' },
  },
});
