// The peers' programs: names, versions and how to get them. Go and Rust build them from their registries with the default settings of
// these tools. The programs are kept in .cache/peers, and a peer that is not available produces a message.
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeAtomically } from '../../scripts/lib/build-state.mjs';
import { CACHE_DIR } from '../../scripts/lib/paths.mjs';

const FOLDER = join(CACHE_DIR, 'peers');
const BUILDING = join(FOLDER, 'building');
const KEPT = join(FOLDER, 'versions.json');
const BUILD_TIMEOUT_MS = 20 * 60_000;

/** Peers, where `programs` are files in FOLDER. */
const PEERS = [
  // rathole's lock file names a version of `time` that current compilers reject, so it is built with the newest dependencies.
  { name: 'rathole', version: '0.5.0', programs: ['rathole'], crates: ['rathole'], locked: false },
  {
    name: 'rustunnel',
    version: '0.7.8',
    programs: ['rustunnel-server', 'rustunnel'],
    crates: ['rustunnel-server', 'rustunnel-client'],
  },
  { name: 'bore', version: '0.6.0', programs: ['bore'], crates: ['bore-cli'] },
  {
    name: 'frp',
    version: '0.71.0',
    programs: ['frps', 'frpc'],
    // frp's web pages are built separately and are not part of the module.
    module: 'github.com/fatedier/frp',
    packages: ['./cmd/frps', './cmd/frpc'],
    tags: 'noweb',
  },
  { name: 'chisel', version: '1.12.1', programs: ['chisel'], module: 'github.com/jpillora/chisel' },
  { name: 'piko', version: '0.8.1', programs: ['piko'], module: 'github.com/andydunstall/piko' },
  // gost's tags are not valid Go module versions, so users have to put the program into the folder.
  { name: 'gost', version: '3.2.6', programs: ['gost'] },
];

export const programFile = (name) => join(FOLDER, name);
export const isThere = (name) => existsSync(programFile(name));
const areThere = ({ programs }) => programs.every(isThere);

/** Returns the versions of installed programs by peer. For a program that a user installed, it returns the wanted version. */
export const peerVersions = () =>
  Object.fromEntries(
    PEERS.filter(areThere).map(({ name, version, programs }) => [name, kept()[programs[0]] ?? version]),
  );

const kept = () => (existsSync(KEPT) ? JSON.parse(readFileSync(KEPT, 'utf8')) : {});

/** Builds the `wanted` programs that are missing in the required version. @param {(line: string) => void} say */
export async function obtainPeers(wanted, say) {
  mkdirSync(FOLDER, { recursive: true });
  // Removes the remains of an interrupted build.
  rmSync(BUILDING, { recursive: true, force: true });
  for (const peer of PEERS.filter(({ programs }) => programs.some((program) => wanted.includes(program)))) {
    if (areThere(peer) && (kept()[peer.programs[0]] ?? peer.version) === peer.version) continue;
    try {
      await build(peer, () => say(`${peer.name} ${peer.version}: building`));
      const versions = Object.fromEntries(peer.programs.map((program) => [program, peer.version]));
      writeAtomically(KEPT, `${JSON.stringify({ ...kept(), ...versions }, null, 1)}\n`);
    } catch (error) {
      say(`${peer.name} ${peer.version} is not to be had: ${error.message}`);
    }
  }
}

async function build(peer, begin) {
  const folder = BUILDING;
  mkdirSync(folder);
  try {
    if (peer.crates) await buildCrates(peer, folder, begin);
    else if (peer.module) await buildModule(peer, folder, begin);
    else throw new Error(`no registry has it; put ${peer.programs.join(' and ')} into .cache/peers`);
    for (const program of peer.programs) renameSync(join(folder, 'bin', program), programFile(program));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function buildCrates({ crates, version, locked = true }, folder, begin) {
  begin();
  const common = ['--version', version, ...(locked ? ['--locked'] : []), '--root', folder];
  const env = { CARGO_TARGET_DIR: join(folder, 'target') };
  for (const crate of crates) await run('cargo', ['install', crate, ...common], { env });
}

/** Builds a Go module. `go install` is not used, because it rejects modules that replace a dependency with a fork, such as frp. */
async function buildModule({ module: name, version, packages = ['.'], tags = '' }, folder, begin) {
  const source = await run('go', ['mod', 'download', '-json', `${name}@v${version}`], { cwd: folder });
  begin();
  cpSync(JSON.parse(source).Dir, join(folder, 'source'), { recursive: true });
  mkdirSync(join(folder, 'bin'));
  await run('chmod', ['-R', 'u+w', join(folder, 'source')]);
  const args = ['build', '-trimpath', '-tags', tags, '-o', join(folder, 'bin/'), ...packages];
  await run('go', args, { cwd: join(folder, 'source') });
}

/** Runs a command and returns its stdout. An error contains the last line of the command's output. */
function run(command, args, { cwd, env } = {}) {
  const options = { cwd, env: { ...process.env, ...env }, timeout: BUILD_TIMEOUT_MS };
  return new Promise((resolve, reject) => {
    // nice keeps the cores free for other programs on the machine.
    const child = spawn('nice', [command, ...args], { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    const said = { out: '', error: '' };
    child.stdout.setEncoding('utf8').on('data', (text) => (said.out += text));
    child.stderr.setEncoding('utf8').on('data', (text) => (said.error = (said.error + text).slice(-4000)));
    child.once('error', reject);
    child.once('close', (code) => (code === 0 ? resolve(said.out) : reject(new Error(lastWords(command, said)))));
  });
}

function lastWords(command, { out, error }) {
  // `go mod download -json` reports errors in its JSON output.
  const told = /"Error": "((?:[^"\\]|\\.)*)"/.exec(out)?.[1] ?? error.trim();
  return (
    told
      .replaceAll(/\\[nt]/g, ' ')
      .split('\n')
      .at(-1)
      ?.slice(-200) || `${command} is missing or failed`
  );
}

/** Returns the versions of programs from Debian, or null for each missing program. */
export function systemVersions() {
  const firstLine = (command, args) => {
    const { error, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
    return error ? null : `${stdout}${stderr}`.trim().split('\n')[0];
  };
  return { openssh: firstLine('ssh', ['-V'])?.replace(/,.*/, '') ?? null };
}
