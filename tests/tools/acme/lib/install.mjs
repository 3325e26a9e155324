// Installs Go programs for the suites in this folder and for `npm run try:public` into .cache/acme.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { CACHE_DIR, ROOT } from '../../../../scripts/lib/paths.mjs';
import { installGoPrograms } from '../../lib/go-programs.mjs';

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
export const install = (...names) =>
  installGoPrograms(BIN, Object.fromEntries(names.map((name) => [name, PROGRAMS[name]])));
