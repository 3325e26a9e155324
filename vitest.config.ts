// How tests run: projects, each with the time and the parallelism its kind needs.
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

// Workspace packages resolve to their sources, so a test never sees a stale build.
const conditions = ['source', 'module', 'node', 'development|production'];
const resolve = { conditions };
const ssr = { resolve: { conditions, externalConditions: ['source', 'node'] } };
// Where vitest runs a global setup; it does not take the conditions from above.
const environments = { __vitest__: { resolve: { conditions } } };

const UNIT_TESTS = ['packages/*/src/**/*.test.ts', 'apps/*/src/**/*.test.ts'];
const SYSTEM_TESTS = ['tests/{system,chaos,conformance,house,repo,http-differential}/**/*.test.ts'];
// Those that createTestDatabase() serves: a PostgreSQL is started for them once a run.
const DATABASE_TESTS = ['apps/*/src/**/*.db.test.ts', 'tests/**/*.db.test.ts'];

/** Unit tests of seconds each: whole sessions over many sockets, and child processes. `npm run verify` has a minute. */
const SLOW = [
  'packages/mux/src/mux-session.test.ts',
  'packages/mux/src/byte-end.conformance.test.ts',
  'packages/runtime/src/logger/standard-output.test.ts',
  'packages/client/src/resume-state.test.ts',
  'packages/testkit/src/spawn-program.test.ts',
];

/** System tests of half a minute each in which next to nothing runs: time limits that are waited for in earnest. */
const WAITING = [
  'tests/system/resume.test.ts',
  'tests/system/refusals.test.ts',
  'tests/system/silent-link.test.ts',
  'tests/chaos/rough-network.test.ts',
  'tests/conformance/load-balancing/server-sent-events.test.ts',
  'tests/conformance/load-balancing/limits.test.ts',
];

/** Those that take longest begin first: one that began last would have a worker to itself, and the others nothing to do. */
const LONGEST = [
  'tests/system/large-transfer.test.ts',
  'tests/house/start.test.ts',
  'tests/house/bench.test.ts',
  'tests/system/platform-kills.test.ts',
  'tests/system/platform-story.test.ts',
  'tests/system/platform-usage.test.ts',
  'tests/system/platform-regions.test.ts',
  'tests/house/fresh-clone.test.ts',
  'tests/house/signals.test.ts',
  'apps/platform/src/edge-calls/edge-calls.db.test.ts',
  ...SLOW,
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification): boolean => LONGEST.some((file) => moduleId.endsWith(`/${file}`));
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

// Theirs is a second, which a busy machine may take for a breath.
const poll = { timeout: 15_000 };

// Files share the modules of their worker: loading them anew for each file took as long as the tests.
const SHARED = false;

interface Files {
  readonly include: string[];
  readonly exclude?: string[];
}

const unit = (name: string, files: Files) => ({
  resolve,
  ssr,
  test: { name, ...files, isolate: SHARED, expect: { poll }, testTimeout: 60_000, hookTimeout: 60_000 },
});

const system = (name: string, files: Files) => ({
  resolve,
  ssr,
  environments,
  test: {
    name,
    ...files,
    globalSetup: ['tests/global-setup.ts'],
    isolate: SHARED,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});

export default defineConfig({
  test: {
    projects: [
      unit('unit', { include: UNIT_TESTS, exclude: [...DATABASE_TESTS, ...SLOW] }),
      unit('slow', { include: SLOW }),
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
      system('system', { include: SYSTEM_TESTS, exclude: [...DATABASE_TESTS, ...WAITING] }),
      system('waiting', { include: WAITING }),
      {
        resolve,
        ssr,
        environments,
        test: {
          name: 'browser',
          globalSetup: ['tests/browser/browser-setup.ts'],
          include: ['tests/browser/**/*.test.ts'],
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
    sequence: { sequencer: LongestFirst },
    passWithNoTests: true,
  },
});
