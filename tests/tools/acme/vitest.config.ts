// How `npm run try:acme` runs the suite: packages by their sources, as in the other tests, and nothing but pebble.
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
    // The three runs of `npm run try:acme` load the same sources.
    experimental: { fsModuleCache: true, fsModuleCachePath: '.cache/vitest-modules' },
  },
});
