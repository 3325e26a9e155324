#!/usr/bin/env node
// A committed target for npm's link; the program itself is a bundle beside it. Commands that run for months have separate bundles, which
// take less memory.
import { existsSync } from 'node:fs';

const BUNDLES = { stack: 'tunnel-stack', edge: 'tunnel-part', platform: 'tunnel-part' };
const [, , command] = process.argv;
const name = Object.hasOwn(BUNDLES, command) ? BUNDLES[command] : 'tunnel-server';
const bundle = new URL(`../dist/${name}.js`, import.meta.url);
if (existsSync(bundle)) await import(bundle.href);
else {
  process.stderr.write('tunnel-server: not built yet. Run `npm run build` in the checkout, then try again.\n');
  process.exitCode = 2;
}
