// Configuration for `npm run try:public`, inside the network namespace: packages resolve to their sources like in the other tests.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const conditions = ['source', 'module', 'node', 'development|production'];

export default defineConfig({
  root: fileURLToPath(new URL('../../..', import.meta.url)),
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ['source', 'node'] } },
  test: { include: ['tests/tools/public/*-suite.ts'], testTimeout: 300_000, hookTimeout: 90_000 },
});
