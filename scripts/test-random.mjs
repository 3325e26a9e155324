// Runs the randomized tests with many times as many cases, with a different seed each time. Failures caused by one in a million inputs are
// found here, rather than by chance in CI.
// usage: npm run test:random -- [--times 25] [--seconds 120] [FILE]...
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { filesBelow, ROOT } from './lib/paths.mjs';

const { values, positionals } = parseArgs({
  options: { times: { type: 'string', default: '25' }, seconds: { type: 'string', default: '120' } },
  allowPositionals: true,
});

const isRandom = (file) =>
  file.endsWith('.test.ts') && /'fast-check'|-fuzz\.conformance/.test(readFileSync(file, 'utf8'));

const randomTests = () =>
  ['packages', 'apps']
    .flatMap((dir) => filesBelow(join(ROOT, dir)))
    .filter(isRandom)
    .map((file) => relative(ROOT, file));

const chosen = positionals.length > 0 ? positionals : randomTests();
const projects = ['unit', 'slow', 'database', 'slow-system'].flatMap((project) => ['--project', project]);
const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
const { status } = spawnSync(process.execPath, [vitest, 'run', '--testTimeout=3600000', ...projects, ...chosen], {
  cwd: ROOT,
  stdio: 'inherit',
  env: { ...process.env, TUNNEL_RANDOM_TIMES: values.times, TUNNEL_RANDOM_SECONDS: values.seconds },
});
process.exitCode = status ?? 1;
