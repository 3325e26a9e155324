// The .deb and .rpm packages of client and server. nfpm makes them from deploy/packages; the files are staged here.
import {
  chmodSync,
  cpSync,
  existsSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { CACHE_DIR, ROOT } from '../../scripts/lib/paths.mjs';
import { canBuildExecutables, executableName, makeExecutables } from './executables.mjs';
import { withFolder } from './folders.mjs';
import { noticesText } from './notices.mjs';
import { stagePackage } from './npm-packages.mjs';
import { node, run } from './programs.mjs';
import { stageServer } from './server-files.mjs';

const NFPM = 'v2.45.0';
const FORMATS = ['deb', 'rpm'];

/** The names of the processors in packages of Debian. nfpm translates the names for rpm. */
const ARCHITECTURES = { 'linux-x64': 'amd64', 'linux-arm64': 'arm64' };

/** Makes the packages of each Linux target in `<out>/packages`. */
export async function makeSystemPackages({ out, version, commitSecs, targets, say }) {
  const chosen = Object.keys(ARCHITECTURES).filter((target) => targets.includes(target));
  if (chosen.length === 0) return { missing: 'because --targets names no Linux system' };
  if (!canBuildExecutables) return { missing: 'because this needs Linux on an x64 processor' };
  const { path: nfpm, missing } = await findNfpm(say);
  if (missing !== undefined) return { missing };
  const folder = join(out, 'packages');
  mkdirSync(folder, { recursive: true });
  const notices = [];
  const nodes = {};
  for (const target of chosen) {
    for (const [name, stage] of Object.entries(STAGES)) {
      await withFolder(async (files) => {
        const inside = await stage(files, { version, target });
        notices.push(...inside.notices);
        Object.assign(nodes, inside.nodes);
        stampFiles(files, commitSecs);
        const settings = { VERSION: version, ARCH: ARCHITECTURES[target], FILES: files, SOURCE_DATE_EPOCH: commitSecs };
        for (const format of FORMATS) {
          const config = `deploy/packages/nfpm.${name}.yml`;
          const args = ['package', '--config', config, '--packager', format, '--target', folder];
          const printed = await run(nfpm, args, { env: { ...process.env, ...settings } });
          say(`packages/${basename(printed.trim())}`);
        }
      });
    }
  }
  return { notices, nodes };
}

/** Builds nfpm into the cache if it is missing there. Returns the path of the program as { path }, or the reason why there is none as { missing }. */
async function findNfpm(say) {
  const folder = join(CACHE_DIR, 'release', `nfpm-${NFPM}`);
  const path = join(folder, 'nfpm');
  if (existsSync(path)) return { path };
  try {
    await run('go', ['version']);
    say(`building nfpm ${NFPM} with Go, which takes a minute the first time`);
    const env = { ...process.env, GOBIN: folder };
    await run('go', ['install', `github.com/goreleaser/nfpm/v2/cmd/nfpm@${NFPM}`], { env });
    return { path };
  } catch (error) {
    if (error.cause?.code === 'ENOENT')
      return { missing: 'because Go is not found: nfpm, which makes packages, is built with Go' };
    return { missing: `because Go could not build nfpm: ${error.message.trimEnd().split('\n').at(-1).trim()}` };
  }
}

/** Functions that write the files of a package into a folder, as the descriptions in deploy/packages name them. */
const STAGES = {
  hatchway: async (folder, { version, target }) => {
    const made = await makeExecutables({ out: folder, version, targets: [target], say: () => {} });
    renameSync(join(folder, 'executables', executableName(target)), join(folder, 'tunnel'));
    const texts = join(folder, 'npm');
    mkdirSync(texts);
    await stagePackage('hatchway', texts);
    for (const shell of ['bash', 'zsh', 'fish']) {
      const script = await node([join(texts, 'bin/tunnel.mjs'), 'completion', shell]);
      writeFileSync(join(folder, `tunnel.${shell}`), script);
    }
    moveTexts(texts, join(folder, 'doc'), made.notices);
    return made;
  },
  'hatchway-server': async (folder, { target }) => {
    const { notices, node: version } = await stageServer(join(folder, 'lib'), target);
    const doc = join(folder, 'doc');
    moveTexts(join(folder, 'lib'), doc, notices);
    copyMonitoring(doc);
    return { notices, nodes: { [`server-${target}`]: version } };
  },
};

/** Moves the pages of a staged npm package to the folder for documentation, and adds the licenses. */
function moveTexts(folder, doc, notices) {
  mkdirSync(doc);
  renameSync(join(folder, 'docs'), join(doc, 'docs'));
  renameSync(join(folder, 'LICENSE'), join(doc, 'copyright'));
  writeFileSync(join(doc, 'THIRD_PARTY_NOTICES.txt'), noticesText(notices));
  // The README is about installing with npm.
  for (const name of ['README.md', 'THIRD_PARTY_NOTICES.txt']) rmSync(join(folder, name));
}

/**
 * Copies the alert rules and dashboards, without the tests of the rules. Only folders of a staged tree belong to the package: rpm would
 * leave the folders of separately listed files behind.
 */
function copyMonitoring(doc) {
  const filter = (path) => !path.endsWith('.test.yml');
  cpSync(join(ROOT, 'deploy/monitoring'), join(doc, 'monitoring'), { recursive: true, filter });
}

/** Gives every file the time of the commit, and every folder the same rights, so that the packages of a commit are always the same. */
function stampFiles(folder, seconds) {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory()) chmodSync(path, 0o755);
    lutimesSync(path, seconds, seconds);
  }
  lutimesSync(folder, seconds, seconds);
}
