// Prepares the checkout for a command: `install` installs packages, `build` also builds the bundles. Takes well under a second if nothing
// is missing or outdated.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { isBuildFresh } from './lib/build-state.mjs';
import { installState, linkWorkspaces } from './lib/install-state.mjs';
import { CACHE_DIR, ROOT } from './lib/paths.mjs';
import { withProgress } from './lib/progress.mjs';
import { withRunLock } from './lib/run-lock.mjs';

const LOCK_FILE = join(CACHE_DIR, 'ensure.lock');

const say = (line) => process.stderr.write(`${line}\n`);

function checkNodeVersion() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  say(`This needs Node.js 20.19 or newer; you have ${process.versions.node}. Install a newer Node.js and try again.`);
  process.exit(1);
}

/** Maximum characters kept from the end of a step's output, enough to see the reason for a failure. */
const KEPT_CHARS = 64 * 1024;

/** Runs a step and shows its progress. At a terminal, the step's output is shown only if the step fails. */
function run(label, command, args, env = process.env) {
  const isTerminal = process.stderr.isTTY;
  let printed = '';
  const ended = () =>
    new Promise((resolve) => {
      // Redirects the step's output to standard error: standard output belongs to the command that follows.
      const child = spawn(command, args, {
        cwd: ROOT,
        env,
        stdio: isTerminal ? ['ignore', 'pipe', 'pipe'] : ['ignore', 2, 2],
      });
      const keep = (text) => {
        printed = (printed + text).slice(-KEPT_CHARS);
      };
      child.stdout?.setEncoding('utf8').on('data', keep);
      child.stderr?.setEncoding('utf8').on('data', keep);
      child.on('error', (error) => {
        keep(`cannot run ${command}: ${error.message}\n`);
        resolve(1);
      });
      child.on('close', (code) => resolve(code ?? 1));
    });
  return withProgress(label, process.stderr, ended).then((code) => {
    if (code !== 0) process.stderr.write(printed);
    return code;
  });
}

async function install() {
  const state = installState(ROOT);
  if (state.fresh) return;
  say(`Installing packages (${state.why}): npm ${state.command}`);
  const npm = process.env.npm_execpath;
  // A parent npm with `--silent` must not hide the reason for a failure.
  const env = { ...process.env, npm_config_loglevel: 'error', npm_config_progress: 'false' };
  const label = 'Installing packages';
  const code = npm?.endsWith('.js')
    ? await run(label, process.execPath, [npm, state.command], env)
    : await run(label, 'npm', [state.command], env);
  if (code === 0) return;
  say(
    `Installing failed. Run \`npm ${state.command}\` by hand to see why; it needs the network or a filled npm cache.`,
  );
  process.exit(1);
}

async function build() {
  if (isBuildFresh()) return;
  say('Building (the sources are newer than the bundles)');
  const code = await run('Building', process.execPath, [join(ROOT, 'scripts/build.mjs')]);
  if (code === 0) return;
  say('Building failed; the lines above say where.');
  process.exit(1);
}

async function main(goal) {
  checkNodeVersion();
  if (goal !== 'install' && goal !== 'build') {
    say('usage: node scripts/ensure.mjs install|build');
    process.exit(2);
  }
  linkWorkspaces(ROOT);
  if (installState(ROOT).fresh && (goal === 'install' || isBuildFresh())) return;
  const onWait = (pid) => say(`Waiting for another run (pid ${pid}) that is installing or building`);
  await withRunLock(LOCK_FILE, onWait, async () => {
    await install();
    if (goal === 'build') await build();
  });
}

await main(process.argv[2]);
