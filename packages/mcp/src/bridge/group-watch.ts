// A watch over the process group of a server: when we are killed, and can end nothing any more, it does. A server that reads its stdin ends by
// itself then; one that is busy, or has started others, may not.
import { type ChildProcess as NodeChild, spawn } from 'node:child_process';
import type { Socket } from 'node:net';

/** from the end of its stdin to SIGTERM, and from there to SIGKILL */
export const STOP_STEP_MS = 1000;

/**
 * A line means that the group has ended, the end of the pipe that we have. Who ends by itself has a moment for that. The number of a group is not
 * given to another within it.
 */
const SCRIPT = `read -r line || { sleep ${STOP_STEP_MS / 1000}; kill -s KILL -- "-$1"; }`;

/** For systems with process groups. Where there is no shell there is no watch. */
export class GroupWatch {
  readonly #shell: NodeChild;

  constructor(group: number) {
    // In a group of its own: Ctrl-C at the terminal is not for it. Nothing of ours is kept open by it but the pipe.
    this.#shell = spawn('/bin/sh', ['-c', SCRIPT, 'tunnel-mcp-publish', String(group)], {
      stdio: ['pipe', 'ignore', 'ignore'],
      cwd: '/',
      env: { PATH: '/usr/bin:/bin' },
      detached: true,
    });
    this.#shell.on('error', () => {});
    this.#shell.stdin?.on('error', () => {});
    // We may end while it watches.
    this.#shell.unref();
    (this.#shell.stdin as Socket | null)?.unref();
  }

  /** The group has ended: its number may soon be another's. */
  end(): void {
    this.#shell.stdin?.end('\n');
  }
}
