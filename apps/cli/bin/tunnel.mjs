#!/usr/bin/env node
// A committed target for npm's link; the program itself is the bundle beside it.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('../dist/launch.cjs', import.meta.url));
// An ES module that imports the program would start later.
if (existsSync(program)) createRequire(import.meta.url)(program);
else {
  process.stderr.write('tunnel: not built yet. Run `npm run build` in the checkout, then try again.\n');
  process.exitCode = 2;
}
