// What the scripts do is TypeScript, shared with the browser tests: it is bundled, and then loaded.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { CACHE_DIR, ROOT } from '../../../../scripts/lib/paths.mjs';

/** `name` of a file beside this one, without its extension. */
export async function loadTypescript(name) {
  const outfile = join(CACHE_DIR, `tools/${name}.mjs`);
  mkdirSync(join(CACHE_DIR, 'tools'), { recursive: true });
  await build({
    absWorkingDir: ROOT,
    entryPoints: [fileURLToPath(new URL(`${name}.ts`, import.meta.url))],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    conditions: ['source'],
    external: ['@node-rs/argon2', 'pg-native', 'playwright-core', '@sparticuz/chromium', 'vitest'],
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
    },
    logLevel: 'warning',
  });
  return import(pathToFileURL(outfile).href);
}
