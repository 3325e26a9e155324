// Checks whether a change affects comments only. `node scripts/comments-only.mjs [BASE]` compares every changed source file with BASE
// (default: main), ignoring comments and white space. Prints a line per file with other differences and exits with code 1.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';
import { ROOT } from './lib/paths.mjs';

const base = process.argv[2] ?? 'main';
const git = (...args) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 28 });

const codeOf = (file, source) => {
  const { comments } = parseSync(file, source);
  const parts = comments.map(({ end }, at) => source.slice(end, comments[at + 1]?.start));
  return [source.slice(0, comments[0]?.start), ...parts].join('').replace(/\s+/g, '');
};

const changed = git('diff', '--name-status', '--no-renames', base).trim().split('\n').filter(Boolean);
const sources = changed.map((line) => line.split('\t')).filter(([, file]) => /\.(?:tsx?|mjs)$/.test(file));
const differing = sources.filter(([status, file]) => {
  if (status !== 'M' || !existsSync(join(ROOT, file))) return true;
  return codeOf(file, git('show', `${base}:${file}`)) !== codeOf(file, readFileSync(join(ROOT, file), 'utf8'));
});
for (const [status, file] of differing) console.log(`${status} ${file}: more than comments changed`);
console.log(`${sources.length - differing.length} of ${sources.length} changed source files differ in comments only`);
process.exitCode = differing.length === 0 ? 0 : 1;
