// Builds the dashboard in a temporary folder, compresses its files, checks the size of the first load, and only then replaces the
// previous dashboard.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { brotliCompressSync, gzipSync, constants as zlib } from 'node:zlib';
import { hashFiles, isNoTest } from './hash-files.mjs';
import { CACHE_DIR, filesBelow, ROOT } from './paths.mjs';

const SOURCE = join(ROOT, 'apps/dashboard');
export const DASHBOARD_DIST = join(SOURCE, 'dist');
/** File in the built dashboard with the hash of the build's inputs and the size of the first load. */
const MARKER = '.built-from';

/** Maximum compressed size of all files that a browser loads from the login to the overview page. */
const FIRST_LOAD_MAX_BYTES = 200_000;
const FIRST_PAGES = [
  'index.html',
  'src/features/auth/layout.tsx',
  'src/features/auth/login-page.tsx',
  'src/features/shell/shell.tsx',
  'src/features/overview/page.tsx',
];
/** Chunks with dynamic imports that are loaded only on a user action, such as opening a page or a dialog. */
const ON_DEMAND = new Set(['index.html', 'src/features/shell/shell.tsx']);
const PACKED = new Set(['.html', '.js', '.css', '.svg', '.json']);

/** Returns the files that the dashboard build reads in addition to its sources. */
export const dashboardInputs = () => [
  ...['index.html', 'vite.config.ts', 'tsconfig.json'].map((name) => join(SOURCE, name)),
  ...filesBelow(join(SOURCE, 'public')),
];

/** Hashes all inputs of the dashboard build. Most changes in the repository do not affect the hash. */
const hashInputs = () =>
  hashFiles([
    ...['package.json', 'package-lock.json', 'scripts/lib/build-dashboard.mjs'].map((name) => join(ROOT, name)),
    ...dashboardInputs(),
    ...['apps/dashboard/src', 'packages/contract/src', 'packages/errors/src', 'packages/rules/src']
      .flatMap((name) => filesBelow(join(ROOT, name)))
      .filter(isNoTest),
  ]);

/**
 * Builds the dashboard if its inputs have changed. Resolves with a line about its size. Rejects with a message if the build fails or is
 * too large.
 */
export async function buildDashboard() {
  const inputs = hashInputs();
  const [builtFrom, size] = readMarker();
  const bytes = builtFrom === inputs ? Number(size) : await buildAnew(inputs);
  return `dashboard  first load ${(bytes / 1000).toFixed(1)} kB gzip of at most ${FIRST_LOAD_MAX_BYTES / 1000}`;
}

function readMarker() {
  try {
    return readFileSync(join(DASHBOARD_DIST, MARKER), 'utf8').split('\n');
  } catch {
    return [];
  }
}

async function buildAnew(inputs) {
  const folder = join(CACHE_DIR, `dashboard-${process.pid}`);
  try {
    await runVite(folder);
    const bytes = firstLoadBytes(folder);
    if (bytes > FIRST_LOAD_MAX_BYTES) {
      throw new Error(`the dashboard's first load has ${bytes} bytes of gzip; ${FIRST_LOAD_MAX_BYTES} are the most`);
    }
    rmSync(join(folder, '.vite'), { recursive: true });
    for (const file of filesBelow(folder)) pack(file);
    writeFileSync(join(folder, MARKER), `${inputs}\n${bytes}\n`);
    replace(folder);
    return bytes;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function runVite(folder) {
  const vite = join(ROOT, 'node_modules/vite/bin/vite.js');
  const args = [vite, 'build', '--outDir', folder, '--emptyOutDir', '--logLevel', 'warn'];
  return new Promise((resolve, reject) => {
    // NODE_ENV selects React's development build, so the value must not come from the shell or from a test that runs the build.
    const env = { ...process.env, NODE_ENV: 'production' };
    const child = spawn(process.execPath, args, { cwd: SOURCE, env, stdio: ['ignore', 2, 2] });
    child.on('error', reject);
    child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error('the dashboard was not built'))));
  });
}

/** Returns the compressed size of the first pages with all static imports, and the dynamic imports that load without a user action. */
function firstLoadBytes(folder) {
  const manifest = JSON.parse(readFileSync(join(folder, '.vite/manifest.json'), 'utf8'));
  const chunks = new Set();
  const visit = (key) => {
    if (chunks.has(key)) return;
    if (!manifest[key]) throw new Error(`the build has no ${key}`);
    chunks.add(key);
    for (const next of manifest[key].imports ?? []) visit(next);
  };
  for (const page of FIRST_PAGES) visit(page);
  for (const key of [...chunks].filter((name) => !ON_DEMAND.has(name))) {
    for (const next of manifest[key].dynamicImports ?? []) visit(next);
  }
  const files = new Set(['index.html', 'start.js', 'favicon.svg']);
  for (const key of chunks) {
    files.add(manifest[key].file);
    for (const style of manifest[key].css ?? []) files.add(style);
  }
  return [...files].reduce((sum, file) => sum + gzipSync(readFileSync(join(folder, file)), { level: 9 }).length, 0);
}

/** Compresses a file in advance, so that a server does not compress the file at every start or request. */
function pack(file) {
  if (!PACKED.has(extname(file))) return;
  const bytes = readFileSync(file);
  writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  const params = { [zlib.BROTLI_PARAM_QUALITY]: 11, [zlib.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }));
}

/**
 * Replaces the dashboard by two renames. A server that starts between the renames serves no dashboard until the next start, and logs a
 * message.
 */
function replace(folder) {
  const old = `${folder}-old`;
  mkdirSync(dirname(DASHBOARD_DIST), { recursive: true });
  try {
    renameSync(DASHBOARD_DIST, old);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  renameSync(folder, DASHBOARD_DIST);
  rmSync(old, { recursive: true, force: true });
}
