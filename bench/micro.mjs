// npm run bench:micro: operations per second, nanoseconds and allocated bytes per operation, for the code that every byte, frame or
// connection passes.
// The sources are TypeScript and are bundled first, like in `npm run build`.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { CACHE_DIR, ROOT } from '../scripts/lib/paths.mjs';
import { leaveNothingBehind, startChild } from './lib/children.mjs';
import { readMicroOptions, UsageError } from './lib/options.mjs';

const USAGE = `usage: npm run bench:micro [-- --node PATH] [WORD…]
Only the measurements whose name holds one of the words, when there are any.`;
// A young generation of this size is not collected during a sample, so that allocations can be read from the heap.
const NODE_ARGS = ['--expose-gc', '--max-semi-space-size=256', '--min-semi-space-size=256'];

async function runMicro({ node, words }) {
  const outfile = join(CACHE_DIR, 'bench/micro.mjs');
  mkdirSync(join(CACHE_DIR, 'bench'), { recursive: true });
  await build({
    absWorkingDir: ROOT,
    entryPoints: [fileURLToPath(new URL('micro/run.mjs', import.meta.url))],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    conditions: ['source'],
    logLevel: 'warning',
  });
  const onLine = (line) => process.stdout.write(`${line}\n`);
  const child = startChild({ name: 'micro', command: node, args: [...NODE_ARGS, outfile, ...words], onLine });
  const exit = await child.exited;
  if (exit !== 'exit code 0') throw new Error(`${exit}\n${child.output}`);
}

async function main(args) {
  try {
    const options = readMicroOptions(args);
    if (options.help) process.stdout.write(`${USAGE}\n`);
    else await runMicro(options);
    return 0;
  } catch (error) {
    process.stderr.write(`bench:micro failed: ${error.message}\n`);
    if (error instanceof UsageError) process.stderr.write(`${USAGE}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

leaveNothingBehind();
process.exit(await main(process.argv.slice(2)));
