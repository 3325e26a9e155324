// `tunnel status`: shows the running clients of this user and their tunnels, once or continuously. `tunnel` without arguments: suggests
// the next step.
import { existsSync } from 'node:fs';
import { Command } from 'commander';
import { findClients } from '../agent/choose-client.ts';
import { clientLines, NO_CLIENT } from '../agent/status-lines.ts';
import { defaultConfigPath, loadConfig } from '../config/file.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { listenForStop, pause } from '../io/until-stopped.ts';
import { RedrawnLines } from '../output/redrawn-lines.ts';
import { coloursOf } from '../output/text.ts';

interface StatusFlags {
  readonly json?: boolean;
  readonly watch?: boolean;
}

const EXAMPLES = `
Examples:
  $ tunnel status --watch
  $ tunnel status --json | jq '.[].tunnels[].public_url'`;

const WATCH_EVERY_MS = 1000;

export const statusCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  new Command('status')
    .description('Show the clients running on this computer')
    .option('--json', 'Print JSON (with --watch, one line per change)')
    .option('--watch', 'Refresh until Ctrl-C')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: StatusFlags) => {
      if (flags.watch === true) await watchStatus(flags, io);
      else await showStatus(flags, io);
      finish(EXIT.endedAsAsked);
    });

const showStatus = async ({ json }: StatusFlags, io: Io): Promise<void> => {
  const { clients, silent } = await findClients(io);
  const statuses = clients.map(({ status }) => status);
  for (const pid of silent) io.stderr.write(`tunnel: client ${pid} does not answer\n`);
  if (json === true) io.stdout.write(`${JSON.stringify(statuses, null, 2)}\n`);
  else io.stdout.write(`${clientLines(statuses, io.clock.now(), coloursOf(io)).join('\n')}\n`);
};

const watchStatus = async ({ json }: StatusFlags, io: Io): Promise<void> => {
  const stop = listenForStop(io);
  const redrawn = new RedrawnLines(io.stdout);
  let last = '';
  while (!stop.aborted) {
    const statuses = (await findClients(io)).clients.map(({ status }) => status);
    const lines = clientLines(statuses, io.clock.now(), coloursOf(io));
    const text = json === true ? JSON.stringify(statuses) : lines.join('\n');
    if (json !== true && io.stdout.isTTY === true) redrawn.draw(lines);
    else if (text !== last) io.stdout.write(`${text}\n`);
    last = text;
    await pause(WATCH_EVERY_MS, stop, io);
  }
};

const nextOf = (io: Io): string => {
  const config = loadConfig(undefined, io);
  const isEmpty = Object.keys(config?.values.tunnels ?? {}).length === 0;
  return isEmpty ? 'Publish a local port: tunnel http 3000' : 'Open the tunnels in config.yml: tunnel start';
};

/** Prints suggestions for the next step, for a user who types `tunnel` without arguments. */
export const showNextStep = async (io: Io): Promise<ExitCode> => {
  const { clients } = await findClients(io);
  const config = defaultConfigPath(io);
  if (clients.length > 0) await showStatus({}, io);
  else if (existsSync(config)) io.stdout.write(`${NO_CLIENT}\n  ${nextOf(io)}\n`);
  else {
    io.stdout.write('  Sign in: tunnel login\n  Publish a local port: tunnel http 3000\n');
  }
  io.stdout.write('  All commands: tunnel --help\n');
  return EXIT.endedAsAsked;
};
