#!/usr/bin/env node
// A committed target for npm's link; the program itself is the bundle beside it.
import { existsSync } from 'node:fs';
import nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';

// Shell completion and the commands that open tunnels have separate bundles, which load faster.
const BUNDLES = {
  __complete: 'complete',
  http: 'publish',
  files: 'publish',
  tcp: 'publish',
  tls: 'publish',
  udp: 'publish',
  start: 'publish',
};
const [, , command] = process.argv;
const name = Object.hasOwn(BUNDLES, command) ? BUNDLES[command] : 'tunnel';
const bundle = new URL(`../dist/${name}.js`, import.meta.url);
if (existsSync(bundle)) {
  if (nodeModule.enableCompileCache) {
    const { keepCompiledCode } = await import('../dist/compile-cache.js');
    keepCompiledCode(fileURLToPath(new URL('../dist', import.meta.url)));
  }
  await import(bundle.href);
} else {
  process.stderr.write('tunnel: not built yet. Run `npm run build` in the checkout, then try again.\n');
  process.exitCode = 2;
}
