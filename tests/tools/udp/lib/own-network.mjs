// Runs the script in a network namespace of its own, so that rules and addresses are nobody else's.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const MARK = 'TRIES_OWN_NETWORK';

/** Begins the script anew inside; returns only there. Skips with one line where that cannot be done. */
export function inOwnNetwork() {
  if (process.env[MARK] === '1') {
    spawnSync('ip', ['link', 'set', 'lo', 'up']);
    return;
  }
  if (spawnSync('unshare', ['-n', 'true']).status !== 0) {
    process.stdout.write('skipped: a network namespace needs root\n');
    process.exit(0);
  }
  const script = fileURLToPath(`file://${process.argv[1]}`);
  const { status } = spawnSync('unshare', ['-n', process.execPath, script, ...process.argv.slice(2)], {
    stdio: 'inherit',
    env: { ...process.env, [MARK]: '1' },
  });
  process.exit(status ?? 1);
}
