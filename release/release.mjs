// Makes the files of a release in a folder, and publishes nothing: `npm run release`. CONTRIBUTING.md describes the command.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { ROOT } from '../scripts/lib/paths.mjs';
import { canBuildExecutables, executableName, makeExecutables } from './lib/executables.mjs';
import { noticesText } from './lib/notices.mjs';
import { makePackages } from './lib/npm-packages.mjs';
import { readOptions, USAGE, UsageError } from './lib/options.mjs';
import { formulaOf, scoopManifestOf } from './lib/package-managers.mjs';
import { installTools, run } from './lib/programs.mjs';
import { checksumsOf, jsonText, listFiles, manifestOf, provenanceOf } from './lib/records.mjs';
import { makeSboms } from './lib/sbom.mjs';

const startedMs = Date.now();

function say(line) {
  const seconds = Math.round((Date.now() - startedMs) / 1000);
  process.stdout.write(`${String(seconds).padStart(4)} s  ${line}\n`);
}

/** Parts that a later version makes. */
const NOT_AVAILABLE = ['packages', 'image', 'helm'];

/** The commit of the checkout. Local changes are marked: the commit alone would not give the same files. */
async function currentCommit() {
  const head = (await run('git', ['rev-parse', 'HEAD'])).trim();
  const isClean = (await run('git', ['status', '--porcelain'])) === '';
  if (!isClean) say('the checkout has local changes: manifest.json marks the commit as dirty');
  return isClean ? head : `${head}-dirty`;
}

/** Only a folder that does not exist, is empty or holds a release is replaced. */
function checkOut(out) {
  if (!existsSync(out)) return;
  const isRelease =
    statSync(out).isDirectory() && (readdirSync(out).length === 0 || existsSync(join(out, 'manifest.json')));
  if (!isRelease) throw new UsageError(`${out} exists and holds no release: choose another --out`);
}

async function makeAll({ out, options, version }) {
  const { kinds, targets, scope, baseUrl } = options;
  const notices = [];
  const missing = [];
  let nodes = {};
  if (kinds.includes('npm')) notices.push(...(await makePackages({ out, version, scope, say })));
  if (kinds.includes('executables')) {
    if (canBuildExecutables) {
      const made = await makeExecutables({ out, targets, say });
      notices.push(...made.notices);
      nodes = made.nodes;
      if (baseUrl !== undefined) writePackageManagers({ out, version, baseUrl, targets });
    } else {
      say('executables: not made, this needs Linux on an x64 processor');
      missing.push('executables');
    }
  }
  if (kinds.includes('sbom')) await makeSboms({ out, say });
  for (const kind of NOT_AVAILABLE.filter((one) => kinds.includes(one))) {
    say(`${kind}: not available yet`);
    missing.push(kind);
  }
  if (notices.length > 0) writeFileSync(join(out, 'THIRD_PARTY_NOTICES.txt'), noticesText(notices));
  return { nodes, missing };
}

function writePackageManagers({ out, version, baseUrl, targets }) {
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

/** Describes the files of the release. */
function writeRecords({ out, options, version, commit, nodes }) {
  const files = listFiles(out);
  const { kinds, targets, scope, baseUrl } = options;
  const provenance = provenanceOf({
    commit,
    files,
    parameters: { kinds, targets, scope, baseUrl },
    builder: { node: process.versions.node },
  });
  writeFileSync(join(out, 'manifest.json'), jsonText(manifestOf({ version, commit, node: nodes, files })));
  writeFileSync(join(out, 'provenance.json'), jsonText(provenance));
  writeFileSync(join(out, 'SHA256SUMS'), checksumsOf(listFiles(out)));
}

/** The files are made beside the folder, so that a failure leaves the old release in place. */
async function release(options) {
  const out = resolve(
    process.env.INIT_CWD ?? process.cwd(),
    options.out === 'release/out' ? join(ROOT, options.out) : options.out,
  );
  checkOut(out);
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const commit = await currentCommit();
  const unfinished = `${out}.${process.pid}.tmp`;
  mkdirSync(unfinished, { recursive: true });
  try {
    await installTools(say);
    const { nodes, missing } = await makeAll({ out: unfinished, options, version });
    const isEmpty = readdirSync(unfinished).length === 0;
    if (!isEmpty) {
      writeRecords({ out: unfinished, options, version, commit, nodes });
      rmSync(out, { recursive: true, force: true });
      renameSync(unfinished, out);
      const bytes = listFiles(out).reduce((sum, file) => sum + file.bytes, 0);
      say(`release ${version} in ${out}: ${Math.round(bytes / 1e6)} MB`);
    }
    return missing.some((kind) => options.named.includes(kind)) ? 1 : 0;
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

async function main(args) {
  try {
    const options = readOptions(args);
    if (options === 'help') {
      process.stdout.write(`${USAGE}\n`);
      return 0;
    }
    return await release(options);
  } catch (error) {
    process.stderr.write(`release: ${error.message}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

process.exitCode = await main(process.argv.slice(2));
