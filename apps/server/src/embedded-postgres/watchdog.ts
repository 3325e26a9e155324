// Stops the database server when our process is gone without having done so (kill -9, a crash): a shell that waits for
// the end of a pipe which only our process holds. Without it a killed test run, or a killed server, leaves one behind.
import { spawn } from 'node:child_process';

// The pid is believed only while the pid file of the cluster names it: by then it may belong to another program.
const SCRIPT = `
read -r _
is_there() { [ "$(head -n 1 "$2/postmaster.pid" 2>/dev/null)" = "$1" ] && kill -0 "$1" 2>/dev/null; }
is_there "$1" "$2" || exit 0
kill -INT "$1"
for _ in 1 2 3 4 5 6 7 8 9 10; do
  sleep 1
  is_there "$1" "$2" || exit 0
done
kill -QUIT "$1"
`;

export interface Watchdog {
  /** The server has been stopped by ourselves. */
  dismiss(): void;
}

export const watchOver = (serverPid: number, cluster: string): Watchdog => {
  const shell = spawn('/bin/sh', ['-c', SCRIPT, 'tunnel-database-watchdog', String(serverPid), cluster], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  // Without a shell there is no watchdog; the next start finds the server by its pid file all the same.
  shell.on('error', () => {});
  shell.stdin.on('error', () => {});
  shell.unref();
  return { dismiss: () => void shell.kill('SIGKILL') };
};
