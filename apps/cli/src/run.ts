// One run of the program: arguments in, exit code out. Nothing here ends the process.
import { Command, CommanderError } from 'commander';
import { addTunnelCommand } from './commands/add.ts';
import { billingCommand } from './commands/billing.ts';
import { completionCommand } from './commands/completion.ts';
import { reloadCommand, removeCommand, stopCommand } from './commands/control.ts';
import { doctorCommand } from './commands/doctor.ts';
import { filesCommand } from './commands/files.ts';
import { httpCommand } from './commands/http.ts';
import { initCommand } from './commands/init.ts';
import { keysCommand } from './commands/keys.ts';
import { loginCommand, logoutCommand } from './commands/login.ts';
import { logsCommand } from './commands/logs.ts';
import { p2pCommand } from './commands/p2p.ts';
import { poolsCommand } from './commands/pools.ts';
import { readyCommand } from './commands/ready.ts';
import { serviceCommand } from './commands/service.ts';
import { checkCommand, startCommand } from './commands/start.ts';
import { isAlone, showNextStep, statusCommand } from './commands/status.ts';
import { tcpCommand } from './commands/tcp.ts';
import { udpCommand } from './commands/udp.ts';
import { usageCommand } from './commands/usage.ts';
import { EXIT, type ExitCode, exitCodeOfSignal } from './exit-codes.ts';
import { type Io, VERSION } from './io.ts';
import { reportProblem } from './problem-report.ts';
import { Interrupted } from './terminal-prompt.ts';

const EPILOGUE = `
Example:
  $ tunnel http 3000 --token-file data/admin-token

Exit codes: 0 ended as asked, 1 unexpected, 2 usage or configuration, 3 key, password or session refused, 4 every tunnel refused,
5 server not reached within 30 s of the first start, 6 account closed to traffic; 130/143 ended at once by a second signal.
TUNNEL_API_KEY holds the key; TUNNEL_DEBUG=1 logs what the client does and shows the stack of an unexpected error.`;

const buildProgram = (io: Io, finish: (code: ExitCode) => void): Command => {
  const program = new Command('tunnel')
    .description('Publishes local services through a tunnel edge.')
    .version(VERSION)
    .addHelpText('after', EPILOGUE)
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
      outputError: (text, write) => write(`tunnel: ${text.replace(/^error: /, '')}`),
    })
    .showHelpAfterError('  See `tunnel --help`.')
    .exitOverride();
  for (const command of COMMANDS) addCommand(program, command(io, finish));
  return program;
};

const COMMANDS = [
  initCommand,
  httpCommand,
  filesCommand,
  tcpCommand,
  udpCommand,
  p2pCommand,
  startCommand,
  statusCommand,
  readyCommand,
  addTunnelCommand,
  removeCommand,
  reloadCommand,
  stopCommand,
  logsCommand,
  poolsCommand,
  checkCommand,
  doctorCommand,
  serviceCommand,
  completionCommand,
  loginCommand,
  logoutCommand,
  keysCommand,
  usageCommand,
  billingCommand,
];

/** Those below it too: they were made before they had a parent. */
const addCommand = (parent: Command, command: Command): void => {
  parent.addCommand(command);
  inheritSettings(parent, command);
};

const inheritSettings = (parent: Command, command: Command): void => {
  command.copyInheritedSettings(parent);
  for (const below of command.commands) inheritSettings(command, below);
};

export const run = async (args: readonly string[], io: Io): Promise<ExitCode> => {
  let exitCode: ExitCode = EXIT.endedAsAsked;
  const finish = (code: ExitCode): void => {
    exitCode = code;
  };
  try {
    if (isAlone(args, io)) return await showNextStep(io);
    await buildProgram(io, finish).parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    // commander has printed what is wrong, or the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.endedAsAsked : EXIT.usage;
    if (error instanceof Interrupted) return exitCodeOfSignal('SIGINT');
    return reportProblem(error, io);
  }
};
