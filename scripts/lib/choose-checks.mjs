// Chooses the files to lint and the unit tests to run in `npm run verify`: files and tests that a change can affect.
import { posix } from 'node:path';
import { isSource } from './import-graph.mjs';

/** Files that can affect every test. If such a file has changed, all unit tests run. */
const CONCERNS_TESTS =
  /^(?:(?:(?:packages|apps)\/[^/]+\/)?(?:package|tsconfig[\w.]*)\.json|package-lock\.json|vitest\.config\.ts|tests\/random-cases\.fixture\.ts)$/;
const CONCERNS_LINT = /(?:^|\/)(?:package|package-lock|tsconfig[\w.]*|\.oxlintrc)\.json$/;
/** Ambient declarations, which apply even to files without an import of the declaration. */
const AMBIENT = /^declare (?:global|module)\b/m;

/** Tests that `npm run verify` can run: short unit tests, and tests of the repository. See vitest.config.ts. */
const TEST = /^(?:(?:packages|apps)\/[^/]+\/src\/|tests\/repo\/)(?!.*\.(?:db|slow|load|long)\.test\.ts$).*\.test\.ts$/;
/** Tests that read folders or list all files of git. Any change can affect such a test. */
const LOOKS_THROUGH = /\breaddirSync\b|'ls-files'/;

/**
 * Maximum test files within the time limit of `npm run verify`. If more test files are affected, the test files nearest to the change
 * run.
 */
const MOST_TEST_FILES = 80;

/**
 * Chooses the tests and the files to lint. `changed` is the result of changedFiles(); undefined chooses everything.
 * @returns {{ tests: string[] | undefined, lint: string[] | undefined, lines: string[] }} `tests` and `lint` are paths, undefined for all
 * tests or files; `lines` describe the choice
 */
export function chooseChecks(graph, changed, most = MOST_TEST_FILES) {
  if (changed === undefined)
    return { tests: undefined, lint: undefined, lines: ['all unit tests, and those of the repository'] };
  const { paths } = changed;
  const seeds = seedsOf(graph, changed);
  const known = new Set(graph.files);
  const isAllLint =
    graph.filesWith(AMBIENT).some((file) => paths.includes(file)) || paths.some((path) => CONCERNS_LINT.test(path));
  const lint = isAllLint
    ? undefined
    : [...graph.reachedFrom(seeds, { withTypes: true }).keys()].filter((path) => known.has(path));
  const everything = paths.find((path) => CONCERNS_TESTS.test(path));
  if (everything)
    return {
      tests: undefined,
      lint,
      lines: [`all unit tests, and those of the repository, because ${everything} has changed`],
    };
  const all = graph.files.filter((path) => TEST.test(path));
  const looking = graph.filesWith(LOOKS_THROUGH).filter((path) => path.startsWith('tests/repo/'));
  const reached = [...looking, ...graph.reachedFrom(seeds).keys()];
  const near = [...new Set(reached)].filter((path) => TEST.test(path) && known.has(path));
  return { tests: near.slice(0, most), lint, lines: [saidOf(near.length, all.length, paths.length, most)] };
}

/**
 * Returns the files from which a change spreads: the changed files, importers redirected by a changed index.ts, and users of changed
 * files that are not sources.
 */
function seedsOf(graph, { paths, before }) {
  const known = new Set(graph.files);
  const users = paths.flatMap((path) => {
    if (known.has(path)) return graph.redirectedBy(path, before(path));
    // A deleted source needs no special treatment: every importer must have changed too, or type checking fails.
    if (isSource(path)) return [];
    return usersOf(graph, path);
  });
  return [...new Set([...paths, ...users])];
}

/**
 * Finds the sources that depend on a file that is not a source: sources with the file's name in quotes, and sources that read all files
 * of an enclosing folder.
 */
function usersOf(graph, path) {
  // For Markdown files, names in backticks do not count, because comments mention pages in backticks.
  const quotes = path.endsWith('.md') ? `['"]` : `['"\`]`;
  const naming = graph.filesWith(new RegExp(`(?<![\\w.-])${escaped(posix.basename(path))}${quotes}`));
  const looking = graph.filesWith(LOOKS_THROUGH).filter((file) => path.startsWith(`${posix.dirname(file)}/`));
  return [...naming, ...looking];
}

const escaped = (text) => text.replace(/[^\w-]/g, '\\$&');

function saidOf(near, all, changed, most) {
  const files = changed === 1 ? 'the changed file' : `the ${changed} changed files`;
  if (near <= most) return `${near} of ${all} test files, those that ${files} can make a difference to`;
  return `${most} of the ${near} test files that ${files} can make a difference to, the nearest: \`npm run verify -- --all\` runs all ${all}`;
}
