// Runs the programs that a release needs, and installs the packages of release/package.json first.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installState } from '../../scripts/lib/install-state.mjs';
import { ROOT } from '../../scripts/lib/paths.mjs';

export const RELEASE = join(ROOT, 'release');

const OUTPUT_MAX_BYTES = 256 * 1024 * 1024;

/** Runs a program to its end. Returns stdout; an error has the last lines of the output in its message. */
export async function run(command, args, { cwd = ROOT, env = process.env } = {}) {
  try {
    return (await promisify(execFile)(command, args, { cwd, env, maxBuffer: OUTPUT_MAX_BYTES })).stdout;
  } catch (error) {
    const printed = `${error.stdout ?? ''}${error.stderr ?? ''}`.trimEnd().split('\n').slice(-15).join('\n');
    throw new Error(`${command} ${args.slice(0, 3).join(' ')} failed: ${error.code ?? error.message}\n${printed}`, {
      cause: error,
    });
  }
}

export const node = (args, options) => run(process.execPath, args, options);

export function npm(args, options) {
  const script = process.env.npm_execpath;
  const quiet = [...args, '--loglevel=error'];
  return script?.endsWith('.js') ? node([script, ...quiet], options) : run('npm', quiet, options);
}

/** The Node.js binaries are optional dependencies: npm records their hashes, and node-binaries.mjs fetches those that a run needs. */
export async function installTools(say) {
  const state = installState(RELEASE);
  if (state.fresh) return;
  say(`installing the tools of release/package.json (${state.why})`);
  await npm(['ci', '--omit=optional', '--ignore-scripts', '--prefer-offline'], { cwd: RELEASE });
}
