// Checks whether the bundles were built from the current sources, by a hash of all inputs.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DASHBOARD_DIST, dashboardInputs } from './build-dashboard.mjs';
import { hashFiles, isNoTest } from './hash-files.mjs';
import { CACHE_DIR, filesBelow, ROOT, workspaceDirs } from './paths.mjs';

const MARKER = join(CACHE_DIR, 'build.json');

export const BUNDLES = [
  { entry: 'apps/server/src/main.ts', outfile: 'apps/server/dist/tunnel-server.js', isSplit: true },
  { entry: 'apps/server/src/part-main.ts', outfile: 'apps/server/dist/tunnel-part.js', isSplit: true },
  { entry: 'apps/server/src/stack-main.ts', outfile: 'apps/server/dist/tunnel-stack.js' },
  // CommonJS without chunks, because a file that loads others as ES modules starts later, and compiled code is kept for a single file.
  ...['launch', 'help', 'complete', 'publish'].map((name) => ({
    entry: `apps/cli/src/${name}-main.ts`,
    outfile: `apps/cli/dist/${name}.cjs`,
  })),
  { entry: 'apps/cli/src/main.ts', outfile: 'apps/cli/dist/tunnel.cjs' },
  { entry: 'packages/client/src/index.ts', outfile: 'packages/client/dist/index.js' },
];

/** Files of the API reference viewer (Swagger UI), and their locations beside the server. */
export const API_REFERENCE = ['swagger-ui-bundle.js', 'swagger-ui.css'].map((name) => ({
  name,
  outfile: join(ROOT, 'apps/server/dist/api-reference', name),
}));

/** Folder of the guide: the pages of docs/, rendered for the browser. */
export const GUIDE_DIST = join(ROOT, 'apps/server/dist/guide');

export function hashInputs() {
  const files = [join(ROOT, 'package.json'), join(ROOT, 'package-lock.json'), ...filesBelow(join(ROOT, 'scripts'))];
  files.push(join(ROOT, 'deploy/systemd/tunnel-server.service'), ...filesBelow(join(ROOT, 'docs')));
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
    join(GUIDE_DIST, 'index.html'),
  ];
  if (!made.every((file) => existsSync(file))) return false;
  try {
    return JSON.parse(readFileSync(MARKER, 'utf8')).inputs === hashInputs();
  } catch {
    return false;
  }
}

/** Deletes the build marker before a build, so that an interrupted build does not look finished. */
export function forgetBuild() {
  rmSync(MARKER, { force: true });
}

export function rememberBuild(inputs) {
  writeAtomically(MARKER, `${JSON.stringify({ inputs })}\n`);
}

/** Writes a file atomically: a program that starts meanwhile sees the old or the new contents, never a part. */
export function writeAtomically(file, contents, { mode } = {}) {
  mkdirSync(dirname(file), { recursive: true });
  const temporary = `${file}.${process.pid}.tmp`;
  writeFileSync(temporary, contents, { mode });
  renameSync(temporary, file);
}
