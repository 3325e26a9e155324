// Installs Go programs for the suites in this folder and for `npm run try:public` into .cache/acme.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE_DIR, ROOT } from '../../../../scripts/lib/paths.mjs';

export const VERSION = 'v2.10.1';
export const BIN = join(CACHE_DIR, 'acme', VERSION);

const PROGRAMS = {
  pebble: `github.com/letsencrypt/pebble/v2/cmd/pebble@${VERSION}`,
  'pebble-challtestsrv': `github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv@${VERSION}`,
  caddy: 'github.com/caddyserver/caddy/v2/cmd/caddy@latest',
};

export const run = (command, args, env = {}) =>
  spawnSync(command, args, { cwd: ROOT, stdio: 'inherit', env: { ...process.env, ...env } }).status ?? 1;

/** @returns {'ready' | 'no Go' | 'failed'} */
export function install(...names) {
  const missing = names.filter((name) => !existsSync(join(BIN, name)));
  if (missing.length === 0) return 'ready';
  if (spawnSync('go', ['version']).status !== 0) return 'no Go';
  mkdirSync(BIN, { recursive: true });
  return missing.every((name) => run('go', ['install', PROGRAMS[name]], { GOBIN: BIN }) === 0) ? 'ready' : 'failed';
}
