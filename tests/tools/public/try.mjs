// Runs a public installation like an operator, on the real ports 80, 443 and 53 in a network namespace: npm run try:public
// Needs root, ip(8) and pebble, which `npm run try:acme` installs with Go. If a program is missing, the script prints a message and ends.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../../scripts/lib/paths.mjs';
import { BIN } from '../acme/lib/install.mjs';

const ADDRESS = '203.0.113.10';
const DOMAIN = 'tunnels.test';
const NAMES = [DOMAIN, `shop.${DOMAIN}`, `other.${DOMAIN}`];

const namespace = `tunnel-public-${process.pid}`;
/** Folder that ip(8) mounts over /etc in the namespace. */
const etc = join('/etc/netns', namespace);

const run = (command, args, options = {}) => spawnSync(command, args, { cwd: ROOT, stdio: 'inherit', ...options });

const missing = () => {
  if (process.getuid?.() !== 0) return 'it needs root for a network namespace';
  if (spawnSync('ip', ['-V']).status !== 0) return 'ip(8) is not found';
  return existsSync(join(BIN, 'pebble')) ? null : 'pebble is not found: npm run try:acme installs it';
};

const must = (...args) => {
  if (run('ip', args).status !== 0) throw new Error(`ip ${args.join(' ')}`);
};

const within = () => {
  mkdirSync(etc, { recursive: true });
  writeFileSync(join(etc, 'hosts'), `127.0.0.1 localhost\n${ADDRESS} ${NAMES.join(' ')}\n`);
  must('netns', 'add', namespace);
  const inside = (...args) => must('-n', namespace, ...args);
  inside('link', 'set', 'lo', 'up');
  // An end of a virtual cable, because some kernels have no dummy interfaces.
  inside('link', 'add', 'public0', 'type', 'veth', 'peer', 'name', 'public1');
  inside('link', 'set', 'public1', 'up');
  inside('address', 'add', `${ADDRESS}/24`, 'dev', 'public0');
  inside('link', 'set', 'public0', 'up');
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'tests/tools/public/vitest.config.ts'];
  const env = { ...process.env, PEBBLE_BIN: BIN, PUBLIC_ADDRESS: ADDRESS, PUBLIC_DOMAIN: DOMAIN };
  return run('ip', ['netns', 'exec', namespace, process.execPath, ...vitest], { env }).status ?? 1;
};

const reason = missing();
if (reason === null) {
  try {
    process.exitCode = within();
  } finally {
    run('ip', ['netns', 'delete', namespace]);
    rmSync(etc, { recursive: true, force: true });
  }
} else console.log(`skipped: ${reason}`);
