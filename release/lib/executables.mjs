// The single executables of the client: Node.js and the bundled program in one file. Linux gets Node.js 24, because newer versions need
// libatomic, which many systems lack. For all other systems the builder inside Node.js 26 makes the file.
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from '../../scripts/lib/paths.mjs';
import { bundleExecutable } from './bundles.mjs';
import { complaintsAbout, pathsOfMachine } from './contents.mjs';
import { formComplaints } from './executable-form.mjs';
import { withFolder } from './folders.mjs';
import { signAdHoc } from './mach-signature.mjs';
import { fetchNode, nodeNotice } from './node-binaries.mjs';
import { checkLicenses } from './notices.mjs';
import { formulaOf, scoopManifestOf } from './package-managers.mjs';
import { RELEASE, run, node as runNode } from './programs.mjs';
import { jsonText, listFiles } from './records.mjs';

export const executableName = (target) => `tunnel-${target}${target.startsWith('win') ? '.exe' : ''}`;

/** The pinned builders are programs for this system. */
export const canBuildExecutables = process.platform === 'linux' && process.arch === 'x64';

/** Makes an executable per target in `<out>/executables`. Returns the notices of all packages inside, and the version of Node.js by target. */
export async function makeExecutables({ out, version, targets, baseUrl, say }) {
  if (!canBuildExecutables) return { missing: 'because this needs Linux on an x64 processor' };
  const folder = join(out, 'executables');
  mkdirSync(folder, { recursive: true });
  return withFolder(async (work) => {
    const notices = await bundleExecutable(join(work, MAIN));
    await checkLicenses(notices);
    const nodes = {};
    for (const target of targets) {
      const node = await fetchNode(target);
      const file = join(folder, executableName(target));
      const build = target.startsWith('linux') ? injectProgram : buildWithNode;
      await build({ work, target, node, file });
      chmodSync(file, 0o755);
      if (target.startsWith('darwin')) writeFileSync(file, signAdHoc(readFileSync(file), 'tunnel'));
      check(target, file);
      nodes[target] = node.version;
      notices.push(nodeNotice(node));
      say(`executables/${executableName(target)} with Node.js ${node.version}`);
    }
    if (baseUrl !== undefined) writePackageManagers({ out, version, targets, baseUrl, say });
    return { notices, nodes };
  });
}

/** Writes the files for package managers that download an executable. */
function writePackageManagers({ out, version, targets, baseUrl, say }) {
  const sums = new Map(listFiles(join(out, 'executables')).map(({ path, sha256 }) => [path, sha256]));
  const files = targets.map((target) => {
    const name = executableName(target);
    return { target, name, sha256: sums.get(name) };
  });
  const formula = formulaOf({ version, baseUrl, files });
  const scoop = scoopManifestOf({ version, baseUrl, files });
  const write = (path, text) => {
    mkdirSync(dirname(join(out, path)), { recursive: true });
    writeFileSync(join(out, path), text);
    say(path);
  };
  if (formula !== null) write('homebrew/hatchway.rb', formula);
  if (scoop !== null) write('scoop/hatchway.json', jsonText(scoop));
}

const addonOf = (target) =>
  join(ROOT, 'node_modules/udx-native/prebuilds', target.replace(/^win-/, 'win32-'), 'udx-native.node');

/** Node.js copies the path from its settings into the executable, so the path is relative. */
const MAIN = 'tunnel.cjs';

function writeConfig({ work, target, output, more }) {
  const file = join(work, `${target}.json`);
  const config = {
    main: MAIN,
    output,
    disableExperimentalSEAWarning: true,
    // Neither works in a file for another system.
    useSnapshot: false,
    useCodeCache: false,
    assets: { 'udx-native.node': addonOf(target) },
    ...more,
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

const SENTINEL = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';

/** For Node.js 24: its blob is the same for both processors, so the builder's own version for this machine makes the blob. */
async function injectProgram({ work, target, node, file }) {
  const blob = join(work, `${target}.blob`);
  const config = writeConfig({ work, target, output: blob });
  await run((await fetchNode('linux-x64')).binary, ['--experimental-sea-config', config], { cwd: work });
  copyFileSync(node.binary, file);
  chmodSync(file, 0o755);
  const postject = join(RELEASE, 'node_modules/postject/dist/cli.js');
  await runNode([postject, file, 'NODE_SEA_BLOB', blob, '--sentinel-fuse', SENTINEL]);
}

async function buildWithNode({ work, target, node, file }) {
  const config = writeConfig({ work, target, output: file, more: { executable: node.binary } });
  await run((await fetchNode('builder')).binary, ['--build-sea', config], { cwd: work });
}

function check(target, file) {
  const bytes = readFileSync(file);
  const path = executableName(target);
  const contents = complaintsAbout({ path, bytes, isText: false }, pathsOfMachine(ROOT));
  const complaints = [...formComplaints(target, bytes).map((complaint) => `${path}: ${complaint}`), ...contents];
  if (complaints.length > 0) throw new Error(complaints.join('\n'));
}
