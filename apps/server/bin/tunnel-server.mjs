#!/usr/bin/env node
// A committed target for npm's link; the program itself is a bundle beside it. That of the stack's parent is small: it runs as long as the rest.
import { existsSync } from 'node:fs';

const name = process.argv[2] === 'stack' ? 'tunnel-stack.js' : 'tunnel-server.js';
const bundle = new URL(`../dist/${name}`, import.meta.url);
if (existsSync(bundle)) await import(bundle.href);
else {
  process.stderr.write('tunnel-server: not built yet. Run `npm run build` in the checkout, then try again.\n');
  process.exitCode = 2;
}
