// Bundles each executable and the client library, copies the viewer of the API reference beside the server, and builds the dashboard.
// `--types` also generates the library's type declarations.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { build } from 'esbuild';
import { buildDashboard } from './lib/build-dashboard.mjs';
import { API_REFERENCE, BUNDLES, forgetBuild, hashInputs, rememberBuild, writeAtomically } from './lib/build-state.mjs';
import { ROOT } from './lib/paths.mjs';

const require = createRequire(import.meta.url);
const SWAGGER_UI = dirname(require.resolve('swagger-ui-dist/package.json'));

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const unit = readFileSync(join(ROOT, 'deploy/systemd/tunnel-server.service'), 'utf8');

// Global names of CommonJS, still used by CommonJS packages inside an ES module bundle.
const COMMONJS_NAMES = [
  "import { createRequire as __createRequire } from 'node:module';",
  "import { fileURLToPath as __fileURLToPath } from 'node:url';",
  'const require = __createRequire(import.meta.url);',
  'const __filename = __fileURLToPath(import.meta.url);',
  "const __dirname = __fileURLToPath(new URL('.', import.meta.url));",
].join(' ');

/** Bundles an entry. With `isSplit`, modules that are imported on demand become separate files beside the bundle. */
async function bundle({ entry, outfile, isSplit = false }) {
  const result = await build({
    absWorkingDir: ROOT,
    entryPoints: [{ in: entry, out: basename(outfile, '.js') }],
    outdir: dirname(outfile),
    splitting: isSplit,
    // Chunks are in the same folder as the bundle, because modules locate neighboring files relative to their own path.
    chunkNames: `${basename(outfile, '.js')}-[hash]`,
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    conditions: ['source'],
    // Native packages stay in node_modules. pg-native is optional and unused; udx-native is optional and loaded when a peer connects
    // directly.
    external: ['@node-rs/argon2', 'pg-native', 'udx-native'],
    sourcemap: 'linked',
    sourcesContent: false,
    legalComments: 'none',
    // V8 keeps the source of running code in memory, with two bytes per character if the source has any non-Latin-1 character, for
    // example in a comment. Names are kept and lines stay short, so that stack traces remain useful.
    minifyWhitespace: true,
    lineLimit: 160,
    define: { __TUNNEL_VERSION__: JSON.stringify(version), __TUNNEL_UNIT__: JSON.stringify(unit) },
    banner: { js: COMMONJS_NAMES },
    logLevel: 'warning',
  });
  // Writes the entry last, because the entry refers to the chunks: a program that starts during the build must find the chunks.
  for (const file of result.outputFiles.toSorted((a, b) => a.path.length - b.path.length).reverse()) {
    writeAtomically(file.path, file.contents);
  }
  removeOldChunks(outfile, new Set(result.outputFiles.map(({ path }) => basename(path))));
  const scripts = result.outputFiles.filter(({ path }) => path.endsWith('.js'));
  const kib = Math.round(scripts.reduce((sum, { contents }) => sum + contents.length, 0) / 1024);
  process.stderr.write(`  ${basename(outfile)}  ${kib} KiB\n`);
}

/** Removes chunks of previous builds. Chunk names contain a hash of the contents. */
function removeOldChunks(outfile, made) {
  const folder = join(ROOT, dirname(outfile));
  const chunk = new RegExp(`^${basename(outfile, '.js')}-[A-Z0-9]+\\.js(\\.map)?$`);
  for (const name of readdirSync(folder)) if (chunk.test(name) && !made.has(name)) rmSync(join(folder, name));
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
    await Promise.all([...BUNDLES.map(bundle), ...API_REFERENCE.map(copyViewer), dashboard]);
    process.stderr.write(`  ${await dashboard}\n`);
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
