// Which files `npm run verify` lints and which unit tests it runs: those that a change can make a difference to.
import { posix } from 'node:path';
import { isSource } from './import-graph.mjs';

/** After a change of one of these nothing can be left out. */
const CONCERNS_TESTS =
  /^(?:(?:(?:packages|apps)\/[^/]+\/)?(?:package|tsconfig[\w.]*)\.json|package-lock\.json|vitest\.config\.ts|tests\/random-cases\.fixture\.ts)$/;
const CONCERNS_LINT = /(?:^|\/)(?:package|package-lock|tsconfig[\w.]*|\.oxlintrc)\.json$/;
/** Such a declaration holds in files that do not import it. */
const AMBIENT = /^declare (?:global|module)\b/m;

/** Tests that `npm run verify` may run: short unit tests, and tests of the repository. See vitest.config.ts. */
const TEST = /^(?:(?:packages|apps)\/[^/]+\/src\/|tests\/repo\/)(?!.*\.(?:db|slow|load|long)\.test\.ts$).*\.test\.ts$/;
/** A test that looks through folders, or all that git has, can meet any change. */
const LOOKS_THROUGH = /\breaddirSync\b|'ls-files'/;

/** More test files than this do not fit into the time of `npm run verify`. The nearest to the change are run. */
const MOST_TEST_FILES = 80;

/**
 * `changed` is what changedFiles() returns, undefined for everything.
 * @returns {{ tests: string[] | undefined, lint: string[] | undefined, lines: string[] }} The paths of tests and of files to lint, undefined for all of them; and lines that say which
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

/** The changed files, what gets something else through a changed index.ts, and the users of a file that is no source. */
function seedsOf(graph, { paths, before }) {
  const known = new Set(graph.files);
  const users = paths.flatMap((path) => {
    if (known.has(path)) return graph.redirectedBy(path, before(path));
    // A source that is gone: every file that imported it has changed as well, or the types are wrong.
    if (isSource(path)) return [];
    return usersOf(graph, path);
  });
  return [...new Set([...paths, ...users])];
}

/** The sources that have the name of a file in quotes, or look through a folder in which both are. */
function usersOf(graph, path) {
  // Comments have the names of pages between backticks.
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
