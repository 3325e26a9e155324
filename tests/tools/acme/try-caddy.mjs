// Caddy behind a tls tunnel gets its own certificate from pebble: npm run try:caddy
// Installs Caddy into .cache/acme with Go, which takes minutes the first time, and pebble as `npm run try:acme` does; where there is no Go, one line says so.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const BIN = join(ROOT, '.cache/acme/v2.10.1');
const PROGRAMS = {
  pebble: 'github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.1',
  caddy: 'github.com/caddyserver/caddy/v2/cmd/caddy@latest',
};

const run = (command, args, env = {}) =>
  spawnSync(command, args, { cwd: ROOT, stdio: 'inherit', env: { ...process.env, ...env } }).status ?? 1;

const install = () => {
  const missing = Object.keys(PROGRAMS).filter((name) => !existsSync(join(BIN, name)));
  if (missing.length === 0) return 'ready';
  if (spawnSync('go', ['version']).status !== 0) return 'no Go';
  mkdirSync(BIN, { recursive: true });
  const isInstalled = missing.every((name) => run('go', ['install', PROGRAMS[name]], { GOBIN: BIN }) === 0);
  return isInstalled ? 'ready' : 'failed';
};

const installed = install();
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
