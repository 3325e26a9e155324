// Goes with every run: the log that can be asked for, and the socket where the client can be asked and changed.

import { choosePaths } from '../../agent/socket-folders.ts';
import { chooseLogger } from '../../config/settings.ts';
import type { Io } from '../../io/io.ts';
import { type AgentServer, startAgent } from './agent-server.ts';
import { LogKeeper } from './log-keeper.ts';
import type { RunHook, RunningClient } from './running-client.ts';

/** null on Windows: node cannot keep a named pipe to one user. */
export const agentHook = (_plan: unknown, io: Io): RunHook | null => {
  if (process.platform === 'win32') return null;
  const log = new LogKeeper(io.clock);
  let server: AgentServer | null = null;
  return {
    output: log,
    onRunning: async (running) => {
      server = await start(running, log, io);
    },
    close: async () => {
      log.close();
      await server?.close();
    },
  };
};

/** Tunnels are what people came for: without a socket they run all the same. */
const start = async (running: RunningClient, log: LogKeeper, io: Io): Promise<AgentServer | null> => {
  const { paths, problems } = choosePaths(io, process.pid);
  try {
    return await startAgent(paths, { running, log, clock: io.clock, logger: chooseLogger(io), pid: process.pid });
  } catch (error) {
    const why = [...problems, ...(paths.length === 0 ? [] : [(error as Error).message])].join('; ');
    io.stderr.write(`tunnel: \`tunnel status\` will not find this client: ${why}\n`);
    return null;
  }
};
