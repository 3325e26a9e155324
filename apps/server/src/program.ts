// The frame of the executable tunnel-server: reads the command line, runs one command, ends with its exit code.
import { Command, CommanderError, Option } from 'commander';
import { VERSION } from './bundle.ts';
import { EXIT_OK, EXIT_USAGE, reportProblem } from './process/problem-report.ts';

export type MakeCommand = (finish: (code: number) => void) => Command;

const EPILOGUE = `
Examples:
  $ tunnel-server stack
  $ tunnel-server admin invite alice@example.com

Exit codes: 0 success, 1 unexpected error, 2 usage or configuration error, 130 and 143 stopped by a
second signal.
Environment: variables override server.toml, for example TUNNEL_SERVER__CONTROL_PORT=4440 sets
[server] control_port. TUNNEL_LOG=json or TUNNEL_LOG=human sets the log format. TUNNEL_DEBUG=1 adds
stack traces to unexpected errors.`;

/** The widest line of any help, as that of the client. */
const HELP_COLUMNS = 100;

const helpWidth = ({ isTTY, columns }: Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>): number =>
  isTTY && columns > 0 ? Math.min(columns, HELP_COLUMNS) : HELP_COLUMNS;

const helpOption = (): Option => new Option('-h, --help', 'Show this help').helpGroup('Options:');

const helpCommand = (): Command => new Command('help').argument('[command]').description('Show help for a command');

const buildProgram = (commands: readonly MakeCommand[], finish: (code: number) => void): Command => {
  const program = new Command('tunnel-server')
    .description('Hatchway: run your own tunnel server (edge, platform and database).')
    .version(VERSION, '-V, --version', 'Show the version')
    .addHelpOption(helpOption())
    .addHelpCommand(helpCommand().helpGroup('Maintain:'))
    .configureOutput({
      getOutHelpWidth: () => helpWidth(process.stdout),
      getErrHelpWidth: () => helpWidth(process.stderr),
      outputError: (text, write) => write(`tunnel-server: ${text.replace(/^error: /, '')}`),
    })
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
