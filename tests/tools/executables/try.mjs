// What people install, where nothing else is installed: the single executables for Linux in a root file system with glibc and the C++ library,
// and the npm tarball in one that also has Node.js: npm run try:executables
// The files and helper programs come from Debian packages, unpacked into .cache and not installed. Where a helper is missing, one line says so.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE_DIR, ROOT } from '../../../scripts/lib/paths.mjs';
import { missingPrograms, unpackPrograms, unpackRoot } from '../lib/debian.mjs';
import { runScript } from '../lib/script.mjs';
import { tryTarball } from './lib/tarball.mjs';
import { writeWrapper } from './lib/wrapper.mjs';

const USAGE = `usage: npm run try:executables [-- --quick]
Makes the executables for linux-x64 and linux-arm64. Runs every command of the first in an empty root file system (bubblewrap), and the system
tests with real executables; a few commands of the second under qemu. Installs the npm tarball from a server in a root file system with
Node.js, and opens a tunnel. --quick: without the system tests. Ten minutes on two cores.`;

const OUT = join(CACHE_DIR, 'executables', 'release');
const LIBRARIES = ['libc6', 'libgcc-s1', 'libstdc++6'];

/** System tests that start real clients: exit codes, signals, kills, service managers, MCP hosts. */
const PROGRAM_TESTS = [
  ...['cli-bundle', 'reload.long', 'service-manager.slow', 'mcp-stdio.slow', 'p2p.slow', 'agent.slow'],
  ...['policy/recipes', 'data-plane/http-inspector'],
].map((name) => `tests/system/${name}.test.ts`);

const PROJECTS = ['system', 'slow-system', 'long'].flatMap((project) => ['--project', project]);

function run(command, args, env = {}) {
  return spawnSync(command, args, { cwd: ROOT, env: { ...process.env, ...env }, stdio: ['ignore', 1, 2] }).status === 0;
}

const vitest = (args, bin) =>
  run(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...PROJECTS, ...args], { TUNNEL_BIN: bin });

/** `tunnel --version` must be fast: seconds of the best of five runs. */
function versionSeconds(command, args) {
  const times = Array.from({ length: 5 }, () => {
    const began = performance.now();
    const { stdout } = spawnSync(command, [...args, '--version'], { encoding: 'utf8' });
    return stdout.trim() === '' ? Number.POSITIVE_INFINITY : (performance.now() - began) / 1000;
  });
  return Math.min(...times);
}

async function main({ values, say, check }) {
  const targets = 'linux-x64,linux-arm64';
  const made = run(process.execPath, [
    'release/release.mjs',
    '--only',
    'npm,executables',
    '--targets',
    targets,
    '--out',
    OUT,
  ]);
  if (!made) throw new Error('the release could not be made');
  const file = (target) => join(OUT, 'executables', `tunnel-${target}`);
  const { files } = JSON.parse(readFileSync(join(OUT, 'manifest.json'), 'utf8'));
  for (const { path, bytes } of files.filter((one) => one.path.startsWith('executables/')))
    say(`${path}: ${Math.round(bytes / 1e6)} MB`);

  const bundle = versionSeconds(process.execPath, [join(ROOT, 'apps/cli/bin/tunnel.mjs')]);
  const single = versionSeconds(file('linux-x64'), []);
  check(single < 2 * bundle, `--version: ${single.toFixed(3)} s, of the bundle ${bundle.toFixed(3)} s`);

  const bwrap = join(unpackPrograms('bubblewrap'), 'usr/bin/bwrap');
  const root = unpackRoot('amd64', ...LIBRARIES);
  say(`root file system: ${root}`);
  const boxed = writeWrapper({ kind: 'bwrap', program: bwrap, root, executable: file('linux-x64') });
  check(vitest(['tests/system/commands.long.test.ts'], boxed), 'linux-x64: every command in an empty root file system');

  const emulated = writeWrapper({
    kind: 'qemu',
    program: join(unpackPrograms('qemu-user-static'), 'usr/bin/qemu-aarch64-static'),
    root: unpackRoot('arm64', ...LIBRARIES),
    executable: file('linux-arm64'),
  });
  const some = ['tests/system/commands.long.test.ts', '-t', 'prints the version|> http$|doctor'];
  check(vitest(some, emulated), 'linux-arm64: version, http and doctor under qemu');

  await tryTarball({ release: OUT, libraries: LIBRARIES, say, check });

  if (!values.quick) check(vitest(PROGRAM_TESTS, file('linux-x64')), 'linux-x64: system tests with real executables');
  return `${single.toFixed(3)} s for --version`;
}

const reason = missingPrograms();
if (reason === null) {
  const name = 'the executables';
  await runScript({ name, usage: USAGE, options: { quick: false }, limitSecs: () => 3600 }, main);
} else console.log(`skipped: ${reason}`);
