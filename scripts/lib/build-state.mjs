// Says whether the bundles were made from the sources as they are now, by a hash over everything that goes into them.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DASHBOARD_DIST, dashboardInputs } from './build-dashboard.mjs';
import { hashFiles, isNoTest } from './hash-files.mjs';
import { CACHE_DIR, filesBelow, ROOT, workspaceDirs } from './paths.mjs';

const MARKER = join(CACHE_DIR, 'build.json');

export const BUNDLES = [
  { entry: 'apps/server/src/main.ts', outfile: 'apps/server/dist/tunnel-server.js', isSplit: true },
  { entry: 'apps/server/src/stack-main.ts', outfile: 'apps/server/dist/tunnel-stack.js' },
  { entry: 'apps/cli/src/main.ts', outfile: 'apps/cli/dist/tunnel.js', isSplit: true },
  // Alone: what it shares with the program would bring half of that along, and a shell waits for it at every Tab.
  { entry: 'apps/cli/src/complete-main.ts', outfile: 'apps/cli/dist/complete.js' },
  { entry: 'packages/client/src/index.ts', outfile: 'packages/client/dist/index.js' },
];

/** Where the viewer of the API reference lies: files of Swagger UI, beside the server. */
export const API_REFERENCE = ['swagger-ui-bundle.js', 'swagger-ui.css'].map((name) => ({
  name,
  outfile: join(ROOT, 'apps/server/dist/api-reference', name),
}));

export function hashInputs() {
  const files = [join(ROOT, 'package.json'), join(ROOT, 'package-lock.json'), ...filesBelow(join(ROOT, 'scripts'))];
  files.push(...dashboardInputs());
  for (const dir of workspaceDirs()) {
    files.push(join(ROOT, dir, 'package.json'));
    files.push(...filesBelow(join(ROOT, dir, 'src')).filter(isNoTest));
  }
  return hashFiles(files);
}

export function isBuildFresh() {
  const made = [
    ...BUNDLES.map(({ outfile }) => join(ROOT, outfile)),
    ...API_REFERENCE.map(({ outfile }) => outfile),
    join(DASHBOARD_DIST, 'index.html'),
  ];
  if (!made.every((file) => existsSync(file))) return false;
  try {
    return JSON.parse(readFileSync(MARKER, 'utf8')).inputs === hashInputs();
  } catch {
    return false;
  }
}

/** Before a build: an interrupted one must not look finished. */
export function forgetBuild() {
  rmSync(MARKER, { force: true });
}

export function rememberBuild(inputs) {
  writeAtomically(MARKER, `${JSON.stringify({ inputs })}\n`);
}

/** A program that starts meanwhile sees the old file or the new one, never half of one. */
export function writeAtomically(file, contents) {
  mkdirSync(dirname(file), { recursive: true });
  const temporary = `${file}.${process.pid}.tmp`;
  writeFileSync(temporary, contents);
  renameSync(temporary, file);
}
