// Runs the script in a separate network namespace, so that its rules and addresses affect no other program.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const MARK = 'TRIES_OWN_NETWORK';

/** Restarts the script inside a new namespace, and returns only there. Prints a message and ends where namespaces are not allowed. */
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
