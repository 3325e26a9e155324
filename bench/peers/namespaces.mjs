// Gives a run a separate network and process table: every port is free, the load stays inside, and nothing outlives the run, however it
// ends.
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';

/** Environment variable that is set inside the namespaces. */
const MARK = 'BENCH_PEERS_INSIDE';
const UNSHARE = ['--net', '--pid', '--fork', '--kill-child=SIGKILL', '--mount-proc'];
const SET_UP = 'ulimit -n "$(ulimit -Hn)"; ip link set lo up && exec "$@"';
const PATIENCE_MS = 15_000;
const EXIT_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };
// Range below the ports of free-ports.mjs. It is larger than usual, because closed connections keep their ports for a minute.
const EPHEMERAL_PORTS = '16384 60999';

export const isInside = () => process.env[MARK] !== undefined;

/** Returns a message about why namespaces are not allowed, or null if they are. */
export function whyNoNamespaces() {
  const { status, error } = spawnSync('unshare', [...UNSHARE, 'ip', 'link', 'set', 'lo', 'up']);
  if (!error && status === 0) return null;
  return 'no namespaces of its own (that needs root, unshare and ip): it runs in the network of this machine';
}

/** Runs this program again inside the namespaces. @returns {Promise<number>} its exit code */
export function runInside(args) {
  const program = [process.execPath, ...process.execArgv, process.argv[1], ...args];
  // The program inside ends when its standard input closes.
  const child = spawn('unshare', [...UNSHARE, 'sh', '-c', SET_UP, 'sh', ...program], {
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { ...process.env, [MARK]: 'yes' },
    detached: true,
  });
  child.stdin.on('error', () => {});
  return new Promise((resolve) => {
    let code = 1;
    for (const [signal, exitCode] of Object.entries(EXIT_CODES)) {
      process.on(signal, () => {
        code = exitCode;
        child.stdin.end();
        setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS).unref();
      });
    }
    child.once('error', () => resolve(1));
    child.once('exit', (status) => resolve(status ?? code));
  });
}

/** Prepares the namespaces. Called once inside, before anything is started. */
export function settleInside() {
  process.stdin.resume();
  process.stdin.once('close', () => process.exit(EXIT_CODES.SIGTERM));
  writeFileSync('/proc/sys/net/ipv4/ip_local_port_range', EPHEMERAL_PORTS);
}
