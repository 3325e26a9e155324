// The frame of the executable tunnel-server: reads the command line, runs one command, ends with its exit code.
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

/** The widest line of any help, as that of the client. */
const HELP_COLUMNS = 100;

const helpWidth = ({ isTTY, columns }: Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>): number =>
  isTTY && columns > 0 ? Math.min(columns, HELP_COLUMNS) : HELP_COLUMNS;

const helpOption = (): Option => new Option('-h, --help', 'Show this help').helpGroup('Options:');

const helpCommand = (): Command => new Command('help').argument('[command]').description('Show help for a command');

/** A command in a list, with its arguments. Every command takes options: naming them in each line would make the lines long. */
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

/** Those below it too: they were made before they had a parent. An error points to the help of the very command. */
const inheritSettings = (command: Command, path: string): void => {
  command.showHelpAfterError(`See \`${path} --help\`.`);
  for (const below of command.commands) {
    below.copyInheritedSettings(command).addHelpOption(helpOption());
    if (below.commands.length > 0) below.addHelpCommand(helpCommand());
    inheritSettings(below, `${path} ${below.name()}`);
  }
};

/** Its exit code. What it has to say goes to the standard output and the standard error of this process. */
export const runCommand = async (commands: readonly MakeCommand[], args: readonly string[]): Promise<number> => {
  let exitCode = EXIT_OK;
  const finish = (code: number): void => {
    exitCode = code;
  };
  try {
    await buildProgram(commands, finish).parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    // commander has printed what is wrong, or the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_OK : EXIT_USAGE;
    return reportProblem(error, process.stderr, process.env);
  }
};

/** Never returns. */
export const runProgram = async (commands: readonly MakeCommand[]): Promise<void> => {
  // A terminal that went away must not take the server with it.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  const code = await runCommand(commands, process.argv.slice(2));
  // Everything was stopped in order by now: a handle that someone forgot does not keep the process.
  process.exit(code);
};
