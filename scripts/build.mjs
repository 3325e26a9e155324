// Bundles each executable, and the client library, into one file, puts the viewer of the API reference beside the server, and builds
// the dashboard. `--types` also makes the library's declarations.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
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

async function bundle({ entry, outfile }) {
  const result = await build({
    absWorkingDir: ROOT,
    entryPoints: [entry],
    outfile,
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    conditions: ['source'],
    // Native code stays where npm has put it; pg's is optional and not used.
    external: ['@node-rs/argon2', 'pg-native'],
    sourcemap: 'linked',
    sourcesContent: false,
    legalComments: 'none',
    define: { __TUNNEL_VERSION__: JSON.stringify(version) },
    banner: { js: COMMONJS_NAMES },
    logLevel: 'warning',
  });
  for (const file of result.outputFiles) writeAtomically(file.path, file.contents);
  const kib = Math.round((result.outputFiles.find(({ path }) => path.endsWith('.js'))?.contents.length ?? 0) / 1024);
  process.stderr.write(`  ${basename(outfile)}  ${kib} KiB\n`);
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
