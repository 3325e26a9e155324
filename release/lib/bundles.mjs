// The bundles of a release: like those of a checkout, but without source maps, and with a list of the packages inside.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';
import { API_REFERENCE, BUNDLES, writeAtomically } from '../../scripts/lib/build-state.mjs';
import { bundleOptions, COMMON_OPTIONS } from '../../scripts/lib/bundle-options.mjs';
import { ROOT } from '../../scripts/lib/paths.mjs';
import { packagesInside, readNotice } from './notices.mjs';

/** Builds every bundle of a workspace into a folder. Returns the notices of the packages inside. */
export async function bundleWorkspace(workspace, folder) {
  const bundles = BUNDLES.filter(({ outfile }) => outfile.startsWith(`${workspace}/`));
  const notices = await Promise.all(
    bundles.map((bundle) => writeBundle({ ...bundleOptions(bundle), outdir: folder, metafile: true })),
  );
  return notices.flat();
}

async function writeBundle(options) {
  const { outputFiles, metafile, warnings } = await build(options);
  if (warnings.length > 0) throw new Error(`esbuild has ${warnings.length} warnings`);
  for (const { path, contents } of outputFiles) writeAtomically(path, contents);
  return packagesInside(metafile).map((name) => readNotice(name));
}

const ADDON_LOADER = /[\\/]udx-native[\\/]binding\.js$/;

/** Replaces the code of udx-native that searches node_modules for the native file. */
const udxFromAsset = {
  name: 'udx-from-asset',
  setup: (esbuild) => {
    esbuild.onLoad({ filter: ADDON_LOADER }, () => ({
      contents: "module.exports = require('./apps/cli/src/udx-addon.ts').loadUdxAddon();",
      resolveDir: ROOT,
    }));
  },
};

/** Bundles the client for the single executables into one CommonJS file. Returns the notices of the packages inside. */
export const bundleExecutable = (file) =>
  writeBundle({
    ...COMMON_OPTIONS,
    entryPoints: ['apps/cli/src/executable-main.ts'],
    outfile: file,
    format: 'cjs',
    target: 'node24',
    plugins: [udxFromAsset, ...COMMON_OPTIONS.plugins],
    metafile: true,
  });

/** The dashboard is built by vite, which keeps no list of packages. esbuild finds the same packages from the entry. */
export async function dashboardNotices() {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['apps/dashboard/src/main.tsx'],
    bundle: true,
    write: false,
    metafile: true,
    outdir: '.cache/unused',
    format: 'esm',
    conditions: ['source'],
    loader: { '.css': 'empty' },
    logLevel: 'error',
  });
  // The styles begin with the reset styles of Tailwind CSS.
  return [...packagesInside(metafile), 'node_modules/tailwindcss'].map((name) => readNotice(name));
}

/** The viewer of the API reference: its bundle has a separate file with the licenses of the packages inside. */
export function viewerNotices() {
  const require = createRequire(join(ROOT, 'package.json'));
  const folder = dirname(require.resolve('swagger-ui-dist/package.json'));
  const more = API_REFERENCE.filter(({ name }) => name.endsWith('.js')).map(({ name }) => `${name}.LICENSE.txt`);
  return [readNotice(folder.slice(ROOT.length + 1), more)];
}
