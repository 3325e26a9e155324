// How `npm run test:random` runs the random tests: as ever, but each of their properties is tried many times more often.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import config from '../../../vitest.config.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const MORE_RUNS = fileURLToPath(new URL('more-runs.ts', import.meta.url));
const HOUR_MS = 3_600_000;

/** Tests import fast-check, and have this instead. */
const moreRuns = {
  name: 'more-runs',
  enforce: 'pre' as const,
  resolveId: (source: string, importer: string | undefined) =>
    source === 'fast-check' && importer !== MORE_RUNS ? MORE_RUNS : undefined,
};

const projects = (config.test?.projects ?? []).map((project) => {
  if (typeof project !== 'object' || !('test' in project)) return project;
  return {
    ...project,
    root: ROOT,
    plugins: [moreRuns],
    test: { ...project.test, testTimeout: HOUR_MS, hookTimeout: HOUR_MS },
  };
});

// Without the cache of modules: in it fast-check would be this one for everybody.
export default defineConfig({ ...config, root: ROOT, test: { ...config.test, projects, experimental: {} } });
