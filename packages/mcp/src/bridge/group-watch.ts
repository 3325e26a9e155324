// Watches the process group of a server and kills the group if the bridge itself is killed and cannot clean up. A server that reads stdin
// exits when stdin closes, but a busy server, or processes started by the server, may not.
import { type ChildProcess as NodeChild, spawn } from 'node:child_process';
import type { Socket } from 'node:net';

/** Time between closing stdin and SIGTERM, and between SIGTERM and SIGKILL. */
export const STOP_STEP_MS = 1000;

/**
 * Shell script of the watch. A line on stdin means that the group has ended; the end of stdin means that the bridge has died. The group
 * then has a moment to exit. The system does not reuse the group id within that time.
 */
const SCRIPT = `read -r line || { sleep ${STOP_STEP_MS / 1000}; kill -s KILL -- "-$1"; }`;

/** Watch over a process group. Only for systems with process groups; without a shell, there is no watch. */
export class GroupWatch {
  readonly #shell: NodeChild;

  constructor(group: number) {
    // Runs in a separate process group, so that Ctrl-C at the terminal does not reach the watch. The watch inherits no file descriptor
    // except the pipe.
    this.#shell = spawn('/bin/sh', ['-c', SCRIPT, 'tunnel-mcp-publish', String(group)], {
      stdio: ['pipe', 'ignore', 'ignore'],
      cwd: '/',
      env: { PATH: '/usr/bin:/bin' },
      detached: true,
    });
    this.#shell.on('error', () => {});
    this.#shell.stdin?.on('error', () => {});
    // The watch does not keep the bridge's process alive.
    this.#shell.unref();
    (this.#shell.stdin as Socket | null)?.unref();
  }

  /** Ends the watch after the group has ended, because the system may soon reuse the group id. */
  end(): void {
    this.#shell.stdin?.end('\n');
  }
}
