// Bundles each executable and the client library, puts compiled code of the client beside its bundle, copies the viewer of the API reference
// beside the server, renders the guide, and builds the dashboard.
// `--types` also generates the library's type declarations.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { build } from 'esbuild';
import { buildDashboard } from './lib/build-dashboard.mjs';
import { buildGuide } from './lib/build-guide.mjs';
import { API_REFERENCE, BUNDLES, forgetBuild, hashInputs, rememberBuild, writeAtomically } from './lib/build-state.mjs';
import { bundleOptions } from './lib/bundle-options.mjs';
import { keepCompiledCode, removeCompiledCode } from './lib/compiled-code.mjs';
import { ROOT } from './lib/paths.mjs';

const require = createRequire(import.meta.url);
const SWAGGER_UI = dirname(require.resolve('swagger-ui-dist/package.json'));

/** Bundles an entry. With `isSplit`, modules that are imported on demand become separate files beside the bundle. */
async function bundle({ entry, outfile, isSplit }) {
  const options = bundleOptions({ entry, outfile, isSplit });
  const result = await build({ ...options, sourcemap: 'linked', sourcesContent: false });
  // Writes the entry last, because the entry refers to the chunks: a program that starts during the build must find the chunks.
  for (const file of result.outputFiles.toSorted((a, b) => a.path.length - b.path.length).reverse()) {
    writeAtomically(file.path, file.contents);
  }
  if (isSplit) removeOldChunks(outfile, new Set(result.outputFiles.map(({ path }) => basename(path))));
  const scripts = result.outputFiles.filter(({ path }) => /\.c?js$/.test(path));
  const kib = Math.round(scripts.reduce((sum, { contents }) => sum + contents.length, 0) / 1024);
  process.stderr.write(`  ${basename(outfile)}  ${kib} KiB\n`);
}

/** Removes chunks of previous builds. Chunk names contain a hash of the contents. */
function removeOldChunks(outfile, made) {
  const folder = join(ROOT, dirname(outfile));
  const chunk = new RegExp(`^${basename(outfile, '.js')}-[A-Z0-9]+\\.js(\\.map)?$`);
  for (const name of readdirSync(folder)) if (chunk.test(name) && !made.has(name)) rmSync(join(folder, name));
}

/** Runs while the dashboard is built, which takes longer. */
function compileClient() {
  const client = join(ROOT, 'apps/cli');
  removeCompiledCode(join(client, 'dist'));
  return keepCompiledCode({ client });
}

/** Copies a file of the API reference viewer, plain and compressed with gzip. */
async function copyViewer({ name, outfile }) {
  const contents = readFileSync(join(SWAGGER_UI, name));
  writeAtomically(outfile, contents);
  writeAtomically(`${outfile}.gz`, await promisify(gzip)(contents, { level: 9 }));
}

async function main() {
  const inputs = hashInputs();
  forgetBuild();
  try {
    const dashboard = buildDashboard();
    const guide = buildGuide();
    const code = Promise.all(BUNDLES.map(bundle)).then(compileClient);
    await Promise.all([code, ...API_REFERENCE.map(copyViewer), dashboard, guide]);
    process.stderr.write(`  ${await dashboard}\n  ${await guide}\n  ${await code}\n`);
  } catch (error) {
    // esbuild has already printed its error. An error of the dashboard build has not been printed yet.
    if (error.errors === undefined) process.stderr.write(`  ${error.message}\n`);
    return 1;
  }
  rememberBuild(inputs);
  if (!process.argv.includes('--types')) return 0;
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  return spawnSync(process.execPath, [tsc, '-b', 'packages/client'], { cwd: ROOT, stdio: 'inherit' }).status ?? 1;
}

process.exitCode = await main();
