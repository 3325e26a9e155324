// How tests run: projects, each with the time and the parallelism its kind needs.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification, type VitestPluginContext } from 'vitest/node';
import { setCallersCertificatesAside } from './tests/caller-certificates.fixture.ts';

setCallersCertificatesAside();

// Workspace packages resolve to their sources, so a test never sees a stale build.
const conditions = ['source', 'module', 'node', 'development|production'];
const resolve = { conditions };
const ssr = { resolve: { conditions, externalConditions: ['source', 'node'] } };
// Where vitest runs a global setup; it does not take the conditions from above.
const environments = { __vitest__: { resolve: { conditions } } };

const RANDOM_CASES = fileURLToPath(new URL('tests/random-cases.fixture.ts', import.meta.url));

/** The cache of modules has to notice when that file moves. One function for all projects: each one more would be another part of the key. */
const cacheKey = ({ sourceCode }: { readonly sourceCode: string }): string | undefined =>
  sourceCode.includes('fast-check') ? RANDOM_CASES : undefined;

/** A test that imports fast-check gets tests/random-cases.fixture.ts, which sets how many cases its properties try. */
const randomCases = {
  name: 'random-cases',
  enforce: 'pre' as const,
  resolveId: (source: string, importer: string | undefined) =>
    source === 'fast-check' && importer !== RANDOM_CASES ? RANDOM_CASES : undefined,
  configureVitest: (context: VitestPluginContext) => context.experimental_defineCacheKeyGenerator(cacheKey),
};

/** The same in all projects. */
const common = { resolve, ssr, environments, plugins: [randomCases] };

// A test's project is in its name and its folder: nothing is listed by hand.
//   x.test.ts          in a package or app: a unit test; in tests/repo/: a test of the repository; elsewhere in tests/: a system test
//   x.slow.test.ts     seconds long (whole sessions over many sockets, child processes, certificates from order to renewal): no part of `npm test`: `npm run test:slow`
//   x.db.slow.test.ts  the same, with a database
//   x.load.test.ts     a system test that keeps the machine busy for half a minute (thousands of connections, their memory, kills, several servers at once or one after the other, the bench): no part of `npm test`
//   x.long.test.ts     what rarely tells anything new of such tests and of browser tests: a part of `npm run test:long`
//   x.db.test.ts       served by createTestDatabase(): a PostgreSQL is started for them once a run
//   x.smoke.test.ts    a browser test of a main path: the other browser tests are no part of `npm test`
const SOURCES = '{packages,apps}/*/src/**';
const DATABASE = '**/*.db.test.ts';
const SLOW = '**/*.slow.test.ts';
const SLOW_DATABASE = '**/*.db.slow.test.ts';
const LOAD = '**/*.load.test.ts';
const LONG = '**/*.long.test.ts';
const SMOKE = 'tests/browser/*.smoke.test.ts';
const LONG_BROWSER = 'tests/browser/*.long.test.ts';

/** Those that take longest begin first: one that began last would have a worker to itself, and the others nothing to do. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isSlow = ({ moduleId }: TestSpecification): boolean => /\.(?:slow|load)\.test\.ts$/.test(moduleId);
    // By the times of the last run where there was one, else by size.
    const sorted = await super.sort(files);
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))];
  }
}

// They name a source of their own under the condition by which ours are found: vite reads it, Node.js would not.
const server = {
  deps: { inline: [/@modelcontextprotocol\/client/, /\/esm\/client\/(?:sse|streamableHttp)\.js$/, /eventsource/] },
};

// Theirs is a second, which a busy machine may take for a breath.
const poll = { timeout: 15_000 };

// Files share the modules of their worker: loading them anew for each file took as long as the tests.
const SHARED = false;

interface Files {
  readonly include: string[];
  readonly exclude?: string[];
}

const unit = (name: string, files: Files) => ({
  ...common,
  test: { name, ...files, isolate: SHARED, server, expect: { poll }, testTimeout: 60_000, hookTimeout: 60_000 },
});

const system = (name: string, files: Files) => ({
  ...common,
  test: {
    name,
    ...files,
    globalSetup: ['tests/global-setup.ts', 'tests/database-setup.ts'],
    isolate: SHARED,
    server,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});

const browser = (name: string, files: Files) => ({
  ...common,
  test: {
    name,
    ...files,
    globalSetup: ['tests/browser/browser-setup.ts'],
    isolate: SHARED,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});

export default defineConfig({
  test: {
    projects: [
      unit('unit', { include: [`${SOURCES}/*.test.ts`], exclude: [DATABASE, SLOW, LONG] }),
      unit('slow', { include: [`${SOURCES}/*.slow.test.ts`, 'tests/repo/*.slow.test.ts'], exclude: [SLOW_DATABASE] }),
      // Like unit tests: nothing is built for these tests, and no database is started.
      unit('repo', { include: ['tests/repo/*.test.ts'], exclude: [SLOW, LOAD, LONG] }),
      {
        ...common,
        test: {
          name: 'database',
          globalSetup: ['tests/database-setup.ts'],
          include: [`${SOURCES}/*.db.test.ts`, 'tests/**/*.db.test.ts'],
          isolate: SHARED,
          server,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      system('system', {
        include: ['tests/**/*.test.ts'],
        exclude: [DATABASE, SLOW, LOAD, LONG, 'tests/{browser,repo,soak}/**'],
      }),
      system('slow-system', {
        include: ['tests/**/*.slow.test.ts', `${SOURCES}/*.db.slow.test.ts`],
        exclude: ['tests/repo/**'],
      }),
      system('load', { include: ['tests/**/*.load.test.ts'] }),
      system('long', { include: [`${SOURCES}/*.long.test.ts`, 'tests/**/*.long.test.ts'], exclude: [LONG_BROWSER] }),
      browser('smoke', { include: [SMOKE] }),
      browser('browser', { include: ['tests/browser/*.test.ts'], exclude: [SMOKE, LONG] }),
      browser('long-browser', { include: [LONG_BROWSER] }),
      {
        ...common,
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
    sequence: { sequencer: SlowFirst },
    // Sources are made into JavaScript once, not once in each step and version of Node.js.
    experimental: { fsModuleCache: true, fsModuleCachePath: '.cache/vitest-modules' },
    passWithNoTests: true,
  },
});
