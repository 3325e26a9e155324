// Builds the dashboard beside the old one, packs its files for the wire, checks the size of its first load, and only then puts
// it into its place.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { brotliCompressSync, gzipSync, constants as zlib } from 'node:zlib';
import { hashFiles, isNoTest } from './hash-files.mjs';
import { CACHE_DIR, filesBelow, ROOT } from './paths.mjs';

const SOURCE = join(ROOT, 'apps/dashboard');
export const DASHBOARD_DIST = join(SOURCE, 'dist');
/** In it: what it was built from, and the size of its first load. */
const MARKER = '.built-from';

/** Everything that a person loads from the login to the overview, packed. */
const FIRST_LOAD_MAX_BYTES = 200_000;
const FIRST_PAGES = [
  'index.html',
  'src/features/auth/layout.tsx',
  'src/features/auth/login-page.tsx',
  'src/features/shell/shell.tsx',
  'src/features/overview/page.tsx',
];
/** Chunks whose dynamic imports wait for a person: a page that is opened, a dialog that a key opens. */
const ON_DEMAND = new Set(['index.html', 'src/features/shell/shell.tsx']);
const PACKED = new Set(['.html', '.js', '.css', '.svg', '.json']);

/** The files that the build reads besides its sources. */
export const dashboardInputs = () => [
  ...['index.html', 'vite.config.ts', 'tsconfig.json'].map((name) => join(SOURCE, name)),
  ...filesBelow(join(SOURCE, 'public')),
];

/** All that goes into it. Most changes of the house do not. */
const hashInputs = () =>
  hashFiles([
    ...['package-lock.json', 'scripts/lib/build-dashboard.mjs'].map((name) => join(ROOT, name)),
    ...dashboardInputs(),
    ...['apps/dashboard/src', 'packages/contract/src', 'packages/errors/src', 'packages/rules/src']
      .flatMap((name) => filesBelow(join(ROOT, name)))
      .filter(isNoTest),
  ]);

/** Gives a line about its size. Throws with one when it cannot be built or is too large. */
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
    // What decides over React's development build must not come from the shell, or from a test that builds.
    const env = { ...process.env, NODE_ENV: 'production' };
    const child = spawn(process.execPath, args, { cwd: SOURCE, env, stdio: ['ignore', 2, 2] });
    child.on('error', reject);
    child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error('the dashboard was not built'))));
  });
}

/** The pages, all that they import, and what they load on their own. */
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

/** Once here, not at every start or request. */
function pack(file) {
  if (!PACKED.has(extname(file))) return;
  const bytes = readFileSync(file);
  writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  const params = { [zlib.BROTLI_PARAM_QUALITY]: 11, [zlib.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }));
}

/** A server that starts between the two steps has no pages until its next start; it says so. */
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
