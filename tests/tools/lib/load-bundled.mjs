// Loads a module that is TypeScript or imports TypeScript. The bundle goes to .cache/tools, two folders below the root like tests/system,
// so that relative paths beside a module stay valid.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { CACHE_DIR, ROOT } from '../../../scripts/lib/paths.mjs';

/** @param {URL} entry @param {string} name of the bundle, without an ending */
export async function loadBundled(entry, name) {
  const outfile = join(CACHE_DIR, `tools/${name}.mjs`);
  mkdirSync(join(CACHE_DIR, 'tools'), { recursive: true });
  await build({
    absWorkingDir: ROOT,
    entryPoints: [fileURLToPath(entry)],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    conditions: ['source'],
    external: ['pg-native', 'esbuild', '@node-rs/argon2', 'playwright-core', '@sparticuz/chromium', 'vitest'],
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
    },
    logLevel: 'warning',
  });
  return import(pathToFileURL(outfile).href);
}
