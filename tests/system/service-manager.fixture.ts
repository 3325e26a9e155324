// What a service manager would hear: a Unix datagram socket, which Node.js cannot open, held by a few lines of Python.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { type Program, spawnProgram } from '@tunnel/testkit';
import type { Harness } from './harness.fixture.ts';

/** Whoever sends waits until the descriptor beside BARRIER=1 is closed: so systemd tells that it has read everything before. */
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

/** Both are there on most Linux systems; elsewhere these tests have nothing to try. */
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

  /** What it was told, without the signs of life. */
  get told(): string[] {
    return this.#program.stdout.slice(1).filter((line) => line !== 'WATCHDOG=1');
  }

  get signsOfLife(): number {
    return this.#program.stdout.filter((line) => line === 'WATCHDOG=1').length;
  }
}
