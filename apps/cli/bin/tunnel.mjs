#!/usr/bin/env node
// A committed target for npm's link; the program itself is the bundle beside it.
import { existsSync } from 'node:fs';

// What a shell asks for in the middle of a line has a small one of its own.
const name = process.argv[2] === '__complete' ? 'complete' : 'tunnel';
const bundle = new URL(`../dist/${name}.js`, import.meta.url);
if (existsSync(bundle)) await import(bundle.href);
else {
  process.stderr.write('tunnel: not built yet. Run `npm run build` in the checkout, then try again.\n');
  process.exitCode = 2;
}
