#!/usr/bin/env node
// A committed target for npm's link; the program itself is the bundle beside it.
import { existsSync } from 'node:fs';

const bundle = new URL('../dist/tunnel.js', import.meta.url);
if (existsSync(bundle)) await import(bundle.href);
else {
  process.stderr.write('tunnel: not built yet. Run `npm run build` in the checkout, then try again.\n');
  process.exitCode = 2;
}
