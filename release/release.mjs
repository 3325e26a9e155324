// Makes the files of a release in a folder, and publishes nothing: `npm run release`. CONTRIBUTING.md describes the command.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ROOT } from '../scripts/lib/paths.mjs';
import { makeExecutables } from './lib/executables.mjs';
import { makeChart } from './lib/helm.mjs';
import { makeImages } from './lib/image.mjs';
import { noticesText } from './lib/notices.mjs';
import { makeNpmPackages } from './lib/npm-packages.mjs';
import { readOptions, USAGE, UsageError } from './lib/options.mjs';
import { installTools, run } from './lib/programs.mjs';
import { checksumsOf, jsonText, listFiles, manifestOf, provenanceOf } from './lib/records.mjs';
import { makeSboms } from './lib/sbom.mjs';
import { makeSystemPackages } from './lib/system-packages.mjs';

const startedMs = Date.now();

function say(line) {
  const seconds = Math.round((Date.now() - startedMs) / 1000);
  process.stdout.write(`${String(seconds).padStart(4)} s  ${line}\n`);
}

/**
 * The makers of the parts, in the order of KINDS in lib/options.mjs. A maker receives { out, version, commitSecs, targets, scope, baseUrl,
 * say }, writes files below `out`, and returns the notices of the packages inside and the versions of Node.js by target, as
 * { notices, nodes }. If this machine cannot make the part, the maker returns the reason as { missing }.
 */
const PARTS = {
  npm: makeNpmPackages,
  executables: makeExecutables,
  packages: makeSystemPackages,
  image: makeImages,
  helm: makeChart,
  sbom: makeSboms,
};

/**
 * The commit of the checkout, and its time in seconds, which every file inside a package gets. Local changes are marked: the commit alone
 * would not give the same files.
 */
async function currentCommit() {
  const [head, seconds] = (await run('git', ['log', '-1', '--format=%H %ct'])).trim().split(' ');
  const isClean = (await run('git', ['status', '--porcelain'])) === '';
  if (!isClean) say('the checkout has local changes: manifest.json marks the commit as dirty');
  return { commit: isClean ? head : `${head}-dirty`, commitSecs: Number(seconds) };
}

/** Only a folder that does not exist, is empty or holds a release is replaced. */
function checkOut(out) {
  if (!existsSync(out)) return;
  const isRelease =
    statSync(out).isDirectory() && (readdirSync(out).length === 0 || existsSync(join(out, 'manifest.json')));
  if (!isRelease) throw new UsageError(`${out} exists and holds no release: choose another --out`);
}

async function makeAll({ kinds, ...context }) {
  const notices = [];
  const nodes = {};
  const missing = [];
  for (const kind of kinds) {
    const made = await PARTS[kind](context);
    notices.push(...(made.notices ?? []));
    Object.assign(nodes, made.nodes);
    if (made.missing === undefined) continue;
    say(`${kind}: not made, ${made.missing}`);
    missing.push(kind);
  }
  if (notices.length > 0) writeFileSync(join(context.out, 'THIRD_PARTY_NOTICES.txt'), noticesText(notices));
  return { nodes, missing };
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
  const { commit, commitSecs } = await currentCommit();
  const unfinished = `${out}.${process.pid}.tmp`;
  mkdirSync(unfinished, { recursive: true });
  try {
    await installTools(say);
    const { nodes, missing } = await makeAll({ ...options, out: unfinished, version, commitSecs, say });
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
