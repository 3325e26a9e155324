// Runs `tunnel` inside the test process: the same commands, config files, signals and exit codes as the executable, over real sockets.
import { join } from 'node:path';
import { type Client, connect } from '@tunnel/client';
import { type Clock, createLogger, silentLogger, systemClock } from '@tunnel/runtime';
import { FreezingClock, type InProcessStreams, type Program, runInProcess } from '@tunnel/testkit';
import { run } from '../../apps/cli/src/all-commands.ts';
import { knownPlatform } from '../../apps/cli/src/api/known-platform.ts';
import type { Io } from '../../apps/cli/src/io/io.ts';
import { rememberFiles } from './files-left.fixture.ts';
import { ProgramSockets } from './program-sockets.fixture.ts';

export interface ClientRun {
  readonly args: readonly string[];
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Clock of the client. Defaults to the system clock. */
  readonly clock?: Clock;
}

export const runClientInProcess = ({ args, home, env, clock: time = systemClock }: ClientRun): Program => {
  const clients: Client[] = [];
  const clock = new FreezingClock(time);
  const sockets = new ProgramSockets();
  const endNow = ({ signals }: InProcessStreams): void => {
    // Closes without a drain, because the test has ended.
    for (const client of clients) void client.close({ drainMs: 0 });
    signals.emit('SIGTERM', 'SIGTERM');
  };
  /** Simulates the end of a process by cutting all open connections. */
  const leave = async (): Promise<void> => {
    // The frozen clock prevents a reconnection of the client meanwhile.
    clock.freeze(true);
    await sockets.cut();
    for (const client of clients) void client.close({ drainMs: 0 });
    clock.freeze(false);
  };
  return runInProcess({
    describe: `tunnel ${args.join(' ')}`,
    main: async ({ stdin, stdout, stderr, signals }) => {
      const io: Io = {
        stdin,
        stdout,
        stderr,
        signals,
        clock,
        logger:
          env['TUNNEL_DEBUG'] === '1'
            ? createLogger({ level: 'debug', format: 'human', stream: stderr })
            : silentLogger,
        home,
        cwd: home,
        // All clients inside the test process have the same pid, so a second client of a home puts its socket into the temporary folder.
        // A folder per home hides the socket from other tests.
        env: { TMPDIR: home, ...env, HOME: home },
        hostName: 'test-computer',
        stdoutClosed: new Promise((resolve) => stdout.once('error', () => resolve())),
        beforeCrash: () => {},
        connect: async (options) => {
          const client = await connect(options);
          clients.push(client);
          return client;
        },
        platformUrl: () => knownPlatform(io),
      };
      const code = await sockets.of(() => run(args, io));
      await leave();
      return code;
    },
    endNow,
    kill: async (streams, ended) => {
      const leaveFiles = rememberFiles(join(home, '.tunnel'));
      await leave();
      endNow(streams);
      await ended;
      leaveFiles();
    },
    freeze: (isFrozen) => clock.freeze(isFrozen),
  });
};
