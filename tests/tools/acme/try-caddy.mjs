// Checks that Caddy behind a tls tunnel gets a certificate from pebble: npm run try:caddy
// Installs Caddy into .cache/acme with Go, which takes minutes the first time, and pebble like `npm run try:acme`. Without Go, the script
// prints a message and ends.
import { join } from 'node:path';
import { BIN, install, run } from './lib/install.mjs';

const installed = install('pebble', 'caddy');
if (installed === 'no Go') console.log('skipped: Go is not found, and Caddy and pebble are installed with it');
if (installed === 'failed') {
  console.log('Caddy or pebble could not be installed');
  process.exitCode = 1;
}
if (installed === 'ready') {
  const args = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--config',
    'tests/tools/acme/vitest.config.ts',
    'caddy-suite',
  ];
  process.exitCode = run(process.execPath, args, { PEBBLE_BIN: BIN, CADDY_BIN: join(BIN, 'caddy') });
}
