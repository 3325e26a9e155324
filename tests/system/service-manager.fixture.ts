// Receives the notifications of a service manager on a Unix datagram socket. Node.js cannot open such a socket, so a short Python program
// holds it.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { type Program, spawnProgram } from '@tunnel/testkit';
import type { Harness } from './harness.fixture.ts';

/**
 * Python program that prints notifications. The program closes the descriptor sent with BARRIER=1, and the sender waits for the close:
 * systemd confirms in the same way that all earlier messages were read.
 */
const LISTENER = `
import array, os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print('listening', flush=True)
while True:
    data, rights, _, _ = s.recvmsg(4096, socket.CMSG_SPACE(64))
    for level, kind, fds in rights:
        held = array.array('i')
        held.frombytes(fds[: len(fds) - len(fds) % held.itemsize])
        for fd in held: os.close(fd)
    if data != b'BARRIER=1': print(data.decode().replace('\\n', ' '), flush=True)
`;

/** True if systemd-notify and Python are installed, as on most Linux systems. Elsewhere the tests are skipped. */
export const canHearNotifications =
  spawnSync('systemd-notify', ['--version']).status === 0 && spawnSync('python3', ['--version']).status === 0;

export class ServiceManager {
  readonly env: Readonly<Record<string, string>>;
  readonly #program: Program;

  constructor(program: Program, socket: string) {
    this.#program = program;
    this.env = { PATH: process.env['PATH'] ?? '', NOTIFY_SOCKET: socket, WATCHDOG_USEC: '2000000' };
  }

  static async listen(harness: Harness): Promise<ServiceManager> {
    const socket = join(await harness.folder(), 'notify');
    const program = await spawnProgram({ command: 'python3', args: ['-c', LISTENER, socket], env: {}, cwd: '/' });
    harness.use(program);
    await program.waitForLine(/listening/);
    return new ServiceManager(program, socket);
  }

  /** Received notifications without the watchdog messages. */
  get told(): string[] {
    return this.#program.stdout.slice(1).filter((line) => line !== 'WATCHDOG=1');
  }

  get signsOfLife(): number {
    return this.#program.stdout.filter((line) => line === 'WATCHDOG=1').length;
  }
}
