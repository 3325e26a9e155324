// Bundles each executable and the client library, puts the viewer of the API reference beside the server, and builds
// the dashboard. `--types` also makes the library's declarations.
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

// CommonJS packages inside an ES module bundle still ask for these names.
const COMMONJS_NAMES = [
  "import { createRequire as __createRequire } from 'node:module';",
  "import { fileURLToPath as __fileURLToPath } from 'node:url';",
  'const require = __createRequire(import.meta.url);',
  'const __filename = __fileURLToPath(import.meta.url);',
  "const __dirname = __fileURLToPath(new URL('.', import.meta.url));",
].join(' ');

/** `isSplit`: what is imported only when it is needed goes into files of its own beside it. */
async function bundle({ entry, outfile, isSplit = false }) {
  const result = await build({
    absWorkingDir: ROOT,
    entryPoints: [{ in: entry, out: basename(outfile, '.js') }],
    outdir: dirname(outfile),
    splitting: isSplit,
    // Not in a folder below: files find their neighbours by where they are themselves.
    chunkNames: `${basename(outfile, '.js')}-[hash]`,
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    conditions: ['source'],
    // Native code stays where npm has put it; pg's is optional and not used, udx's optional and loaded when a peer goes direct.
    external: ['@node-rs/argon2', 'pg-native', 'udx-native'],
    sourcemap: 'linked',
    sourcesContent: false,
    legalComments: 'none',
    // V8 keeps the text of what it runs, and two bytes a character where one of them is not Latin-1, as in a comment. Names stay as they
    // are, and lines stay short: a stack says where.
    minifyWhitespace: true,
    lineLimit: 160,
    define: { __TUNNEL_VERSION__: JSON.stringify(version) },
    banner: { js: COMMONJS_NAMES },
    logLevel: 'warning',
  });
  // The entry last: it names the others, and whoever starts meanwhile must find them.
  for (const file of result.outputFiles.toSorted((a, b) => a.path.length - b.path.length).reverse()) {
    writeAtomically(file.path, file.contents);
  }
  removeOldChunks(outfile, new Set(result.outputFiles.map(({ path }) => basename(path))));
  const scripts = result.outputFiles.filter(({ path }) => path.endsWith('.js'));
  const kib = Math.round(scripts.reduce((sum, { contents }) => sum + contents.length, 0) / 1024);
  process.stderr.write(`  ${basename(outfile)}  ${kib} KiB\n`);
}

/** Of the last build. Their names have a hash of what is in them. */
function removeOldChunks(outfile, made) {
  const folder = join(ROOT, dirname(outfile));
  const chunk = new RegExp(`^${basename(outfile, '.js')}-[A-Z0-9]+\\.js(\\.map)?$`);
  for (const name of readdirSync(folder)) if (chunk.test(name) && !made.has(name)) rmSync(join(folder, name));
}

/** As it is, and packed for the wire. */
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
    // esbuild has printed where and why; the dashboard has not.
    if (error.errors === undefined) process.stderr.write(`  ${error.message}\n`);
    return 1;
  }
  rememberBuild(inputs);
  if (!process.argv.includes('--types')) return 0;
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  return spawnSync(process.execPath, [tsc, '-b', 'packages/client'], { cwd: ROOT, stdio: 'inherit' }).status ?? 1;
}

process.exitCode = await main();
