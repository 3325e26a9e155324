// The npm tarballs of client, library and server: bundled, checked, and packed by npm, which gives all files the same time.
import { chmodSync, cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DASHBOARD_DIST } from '../../scripts/lib/build-dashboard.mjs';
import { API_REFERENCE, GUIDE_DIST } from '../../scripts/lib/build-state.mjs';
import { ROOT, workspaceDirs } from '../../scripts/lib/paths.mjs';
import { bundleWorkspace, dashboardNotices, viewerNotices } from './bundles.mjs';
import { checkFolder, pathsOfMachine } from './contents.mjs';
import { filesIn, withFolder } from './folders.mjs';
import { manifestOf, PACKAGES, publishedName, tarballName } from './manifests.mjs';
import { checkLicenses, noticesText } from './notices.mjs';
import { node, npm, run } from './programs.mjs';
import { pagesOf, withoutSection } from './readme.mjs';
import { jsonText } from './records.mjs';
import { compileAgainst, rollUpTypes } from './types.mjs';

const read = (path) => readFileSync(join(ROOT, path), 'utf8');

/** Writes the files of each package besides package.json and texts. Returns the notices of the packages inside the bundles. */
const CONTENTS = {
  hatchway: (folder) => {
    cpSync(join(ROOT, 'apps/cli/bin'), join(folder, 'bin'), { recursive: true });
    return bundleWorkspace('apps/cli', join(folder, 'dist'));
  },
  'hatchway-client': async (folder) => {
    writeFileSync(join(folder, 'index.d.ts'), await rollUpTypes());
    return bundleWorkspace('packages/client', folder);
  },
  'hatchway-server': async (folder) => {
    cpSync(join(ROOT, 'apps/server/bin'), join(folder, 'server/bin'), { recursive: true });
    cpSync(dirname(API_REFERENCE[0].outfile), join(folder, 'server/dist/api-reference'), { recursive: true });
    cpSync(GUIDE_DIST, join(folder, 'server/dist/guide'), { recursive: true });
    cpSync(DASHBOARD_DIST, join(folder, 'dashboard/dist'), { recursive: true });
    rmSync(join(folder, 'dashboard/dist/.built-from'));
    const server = await bundleWorkspace('apps/server', join(folder, 'server/dist'));
    return [...server, ...(await dashboardNotices()), ...viewerNotices()];
  },
};

const README = {
  hatchway: () => ({ path: 'README.md', text: read('release/readme/hatchway.md') }),
  'hatchway-client': () => ({
    path: 'packages/client/README.md',
    text: withoutSection(read('packages/client/README.md'), '## Folders'),
  }),
  'hatchway-server': () => ({ path: 'README.md', text: read('release/readme/hatchway-server.md') }),
};

/** Writes the files of a package into a folder, as an installation would. Returns its package.json and the notices of the packages inside. */
export async function stagePackage(name, folder, scope) {
  const inside = await CONTENTS[name](folder);
  await checkLicenses(inside);
  const manifests = Object.fromEntries(
    ['.', ...workspaceDirs()].map((dir) => [dir, JSON.parse(read(`${dir}/package.json`))]),
  );
  const manifest = manifestOf(name, { scope, manifests });
  writeTexts(folder, { name, manifest, inside, scope });
  // The mode of a file must not depend on the umask of the checkout.
  for (const path of filesIn(folder)) chmodSync(join(folder, path), /(?:^|\/)bin\//.test(path) ? 0o755 : 0o644);
  return { manifest, notices: inside };
}

/** Makes the three tarballs in `<out>/npm`. Returns the notices of all packages inside. */
export async function makeNpmPackages({ out, version, scope, say }) {
  mkdirSync(join(out, 'npm'), { recursive: true });
  const notices = [];
  for (const { name } of PACKAGES) {
    await withFolder(async (work) => {
      const folder = join(work, 'staged');
      mkdirSync(folder);
      const staged = await stagePackage(name, folder, scope);
      notices.push(...staged.notices);
      const tarball = await pack(folder, work);
      if (tarball !== tarballName(staged.manifest.name, version))
        throw new Error(`npm has named the tarball ${tarball}`);
      await checkTarball(work, { tarball, manifest: staged.manifest });
      renameSync(join(work, tarball), join(out, 'npm', tarball));
      say(`npm/${tarball}`);
    });
  }
  return { notices };
}

function writeTexts(folder, { name, manifest, inside, scope }) {
  writeFileSync(join(folder, 'package.json'), jsonText(manifest));
  writeFileSync(join(folder, 'LICENSE'), read('LICENSE'));
  writeFileSync(join(folder, 'THIRD_PARTY_NOTICES.txt'), noticesText(inside));
  const rename = (text) =>
    text
      .replaceAll('@tunnel/client', publishedName('hatchway-client', scope))
      .replaceAll(`${name}-VERSION.tgz`, tarballName(manifest.name, manifest.version));
  for (const [page, text] of Object.entries(pagesOf({ ...README[name](), read, rename }))) {
    mkdirSync(join(folder, dirname(page)), { recursive: true });
    writeFileSync(join(folder, page), text);
  }
}

async function pack(folder, destination) {
  const printed = await npm(['pack', folder, '--json', '--ignore-scripts', '--pack-destination', destination], {
    cwd: destination,
  });
  return JSON.parse(printed)[0].filename;
}

/** Unpacks a tarball as an installation would, and checks contents, manifest and types. */
async function checkTarball(work, { tarball, manifest }) {
  const folder = join(work, 'unpacked');
  mkdirSync(folder, { recursive: true });
  await run('tar', ['-xzf', join(work, tarball), '-C', folder, '--strip-components=1']);
  checkFolder(folder, pathsOfMachine(ROOT));
  const { publint } = await import('publint');
  const { messages } = await publint({ pkgDir: folder, pack: false, strict: true });
  if (messages.length > 0) throw new Error(`publint: ${tarball}: ${messages.map(({ code }) => code).join(', ')}`);
  if (manifest.exports === undefined) return;
  // The library is an ES module only: what CommonJS without `require(esm)` would find does not matter.
  const attw = join(ROOT, 'release/node_modules/@arethetypeswrong/cli/dist/index.js');
  await node([attw, join(work, tarball), '--profile', 'esm-only', '--format', 'ascii', '--no-emoji']);
  await compileAgainst(folder, manifest.name);
}
