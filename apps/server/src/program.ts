// Runs tunnel-server: parses the command line, runs a command, and exits with its exit code.
import { Command, CommanderError, Option } from 'commander';
import { VERSION } from './bundle.ts';
import { EXIT_OK, EXIT_USAGE, reportProblem } from './process/problem-report.ts';

export type MakeCommand = (finish: (code: number) => void) => Command;

const DESCRIPTION = `Hatchway: run your own tunnel server (edge, platform and database).

Examples:
  $ tunnel-server stack
  $ tunnel-server admin invite alice@example.com`;

const EPILOGUE = `
Exit codes:
  0         Success
  1         Unexpected error
  2         Usage or configuration error
  130, 143  Stopped by a second signal

Environment:
  TUNNEL_SERVER__CONTROL_PORT=4440  Set [server] control_port; every key of
                                    server.toml has such a variable
  TUNNEL_LOG=json                   Set the log format: json or human
  TUNNEL_DEBUG=1                    Show stack traces of unexpected errors`;

/** Maximum line width of help texts, the same as in the client. */
const HELP_COLUMNS = 100;

const helpWidth = ({ isTTY, columns }: Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>): number =>
  isTTY && columns > 0 ? Math.min(columns, HELP_COLUMNS) : HELP_COLUMNS;

const helpOption = (): Option => new Option('-h, --help', 'Show this help').helpGroup('Options:');

const helpCommand = (): Command => new Command('help').argument('[command]').description('Show help for a command');

/**
 * Returns a command's name and arguments for the list of commands. Options are left out, because every command has options and the lines
 * would become long.
 */
const subcommandTerm = (command: Command): string =>
  [
    command.name(),
    ...command.registeredArguments.map((one) => (one.required ? `<${one.name()}>` : `[${one.name()}]`)),
  ].join(' ');

const buildProgram = (commands: readonly MakeCommand[], finish: (code: number) => void): Command => {
  const program = new Command('tunnel-server')
    .description(DESCRIPTION)
    .version(VERSION, '-V, --version', 'Show the version')
    .addHelpOption(helpOption())
    .addHelpCommand(helpCommand().helpGroup('Maintain:'))
    .configureOutput({
      getOutHelpWidth: () => helpWidth(process.stdout),
      getErrHelpWidth: () => helpWidth(process.stderr),
      outputError: (text, write) => write(`tunnel-server: ${text.replace(/^error: /, '')}`),
    })
    .configureHelp({ subcommandTerm })
    .addHelpText('after', EPILOGUE)
    .exitOverride();
  for (const make of commands) {
    program.addCommand(make(finish));
  }
  inheritSettings(program, 'tunnel-server');
  return program;
};

/**
 * Applies the parent's settings to all subcommands, which were created before they had a parent. Error messages then refer to the help of
 * the failed subcommand.
 */
const inheritSettings = (command: Command, path: string): void => {
  command.showHelpAfterError(`See \`${path} --help\`.`);
  for (const below of command.commands) {
    below.copyInheritedSettings(command).addHelpOption(helpOption());
    if (below.commands.length > 0) below.addHelpCommand(helpCommand());
    inheritSettings(below, `${path} ${below.name()}`);
  }
};

/** Runs a command and returns its exit code. The command writes to the standard output and standard error of this process. */
export const runCommand = async (commands: readonly MakeCommand[], args: readonly string[]): Promise<number> => {
  let exitCode = EXIT_OK;
  const finish = (code: number): void => {
    exitCode = code;
  };
  try {
    await buildProgram(commands, finish).parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    // Commander has already printed the error message or the requested help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_OK : EXIT_USAGE;
    return reportProblem(error, process.stderr, process.env);
  }
};

/** Runs the command of the command line, then exits the process. Never returns. */
export const runProgram = async (commands: readonly MakeCommand[]): Promise<void> => {
  // A write error, for example after the terminal was closed, must not stop the server.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  const code = await runCommand(commands, process.argv.slice(2));
  // All parts have been stopped properly by now, so a forgotten handle must not keep the process alive.
  process.exit(code);
};
