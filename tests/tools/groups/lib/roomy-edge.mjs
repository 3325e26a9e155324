// Bundles roomy-edge-program.mjs; `startEdge({ server: await roomyEdge() })` starts it.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { throwAwayFolder } from '../../../../bench/lib/children.mjs';

const PROGRAM = fileURLToPath(new URL('roomy-edge-program.mjs', import.meta.url));
const REQUIRE =
  "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);";

/** Builds the bundle and returns the path of the file to run. */
export async function roomyEdge() {
  const outfile = join(throwAwayFolder(), 'roomy-edge.mjs');
  await build({
    entryPoints: [PROGRAM],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    conditions: ['source'],
    banner: { js: REQUIRE },
    logLevel: 'warning',
  });
  return outfile;
}
