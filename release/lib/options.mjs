// The command line of `npm run release`, as a pure function.
import { parseArgs } from 'node:util';

/** An invalid command line: one line for the user, exit code 2, and nothing is written. */
export class UsageError extends Error {}

export const USAGE = `usage: npm run release -- [--out DIR] [--only LIST] [--targets LIST] [--scope @NAME] [--base-url URL]
  --out DIR       folder for the files (release/out)
  --only LIST     some of: npm, executables, packages, image, helm, sbom
  --targets LIST  some of: linux-x64, linux-arm64, darwin-arm64, darwin-x64, win-x64
  --scope @NAME   publish the npm packages under a scope: @NAME/hatchway
  --base-url URL  where the executables will be downloaded, as URL/tunnel-linux-x64; adds files for Homebrew and Scoop`;

export const KINDS = ['npm', 'executables', 'packages', 'image', 'helm', 'sbom'];
export const TARGETS = ['linux-x64', 'linux-arm64', 'darwin-arm64', 'darwin-x64', 'win-x64'];

const STRING = { type: 'string' };

/**
 * @returns {{ out: string, kinds: string[], named: string[], targets: string[], scope?: string, baseUrl?: string } | 'help'}
 * `named` are the kinds of --only: a kind that cannot be made is a failure only if the user has named it.
 */
export function readOptions(args) {
  const values = parse(args, {
    out: { type: 'string', default: 'release/out' },
    only: STRING,
    targets: STRING,
    scope: STRING,
    'base-url': STRING,
  });
  if (values.help) return 'help';
  const named = listOf('--only', values.only, KINDS);
  const targets = listOf('--targets', values.targets, TARGETS);
  if (values.out === '') throw new UsageError('--out needs the name of a folder');
  return {
    out: values.out,
    named,
    kinds: named.length > 0 ? named : KINDS,
    targets: targets.length > 0 ? targets : TARGETS,
    scope: values.scope === undefined ? undefined : checkScope(values.scope),
    baseUrl: values['base-url'] === undefined ? undefined : checkUrl(values['base-url']),
  };
}

function parse(args, options) {
  try {
    return parseArgs({ args, options: { ...options, help: { type: 'boolean', short: 'h' } } }).values;
  } catch (error) {
    throw new UsageError(error.message.split('. ')[0]);
  }
}

function listOf(flag, text, known) {
  if (text === undefined) return [];
  const names = text.split(',');
  for (const name of names) {
    if (!known.includes(name)) throw new UsageError(`${flag} does not know "${name}"; choose from ${known.join(', ')}`);
  }
  return known.filter((name) => names.includes(name));
}

function checkScope(scope) {
  if (/^@[a-z0-9][a-z0-9._-]*$/.test(scope)) return scope;
  throw new UsageError(`--scope needs a name such as @acme, not "${scope}"`);
}

function checkUrl(text) {
  if (/^https?:$/.test(URL.canParse(text) ? new URL(text).protocol : '')) return text.replace(/\/+$/, '');
  throw new UsageError(`--base-url needs an http or https address, not "${text}"`);
}
