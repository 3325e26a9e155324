// `tunnel` inside the test's process: the same commands, config files, signals and exit codes as the executable, over real sockets.
import { type Client, connect } from '@tunnel/client';
import { type Clock, systemClock } from '@tunnel/runtime';
import { type Program, runInProcess } from '@tunnel/testkit';
import type { Io } from '../../apps/cli/src/io.ts';
import { run } from '../../apps/cli/src/run.ts';

export interface ClientRun {
  readonly args: readonly string[];
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The system's unless told. */
  readonly clock?: Clock;
}

export const runClientInProcess = ({ args, home, env, clock = systemClock }: ClientRun): Program => {
  const clients: Client[] = [];
  return runInProcess({
    describe: `tunnel ${args.join(' ')}`,
    main: ({ stdin, stdout, stderr, signals }) => {
      const io: Io = {
        ...{ stdin, stdout, stderr, signals, clock, home, cwd: home },
        env: { ...env, HOME: home },
        hostName: 'test-computer',
        stdoutClosed: new Promise((resolve) => stdout.once('error', () => resolve())),
        beforeCrash: () => {},
        connect: async (options) => {
          const client = await connect(options);
          clients.push(client);
          return client;
        },
      };
      return run(args, io);
    },
    endNow: ({ signals }) => {
      // Without a drain: the test is over.
      for (const client of clients) void client.close({ drainMs: 0 });
      signals.emit('SIGTERM', 'SIGTERM');
    },
  });
};
