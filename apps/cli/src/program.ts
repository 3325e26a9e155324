// The `tunnel` program around its commands: help, a single run, and the exit code. No code in this file ends the process.
import { nearestWord } from '@tunnel/errors';
import { Command, CommanderError } from 'commander';
import { docsAddress, placeOfCommand } from './io/docs-links.ts';
import { EXIT, type ExitCode, exitCodeOfSignal } from './io/exit-codes.ts';
import { addPage, endBriefHelp, helpConfiguration, helpOption, helpWidth, isBriefHelp } from './io/help.ts';
import { type Io, VERSION } from './io/io.ts';
import { reportProblem, usageSentence } from './io/problem-report.ts';
import { Interrupted } from './io/terminal-prompt.ts';

const PAGE = {
  common: [],
  examples: ['tunnel login', 'tunnel http 3000'],
  note: `Exit codes:
  0         Success
  1         Unexpected error
  2         Usage or configuration error
  3         Key, password or session refused
  4         Every tunnel refused
  5         Server not reached within 30 s of the first start
  6         Account closed to traffic
  130, 143  Stopped by a second signal

Environment:
  TUNNEL_API_KEY  API key to use
  TUNNEL_DEBUG=1  Turn on debug logs`,
};

/** Commands listed by `tunnel -h`. The list must fit on a screen. */
const COMMON_COMMANDS = ['http', 'files', 'tcp', 'p2p', 'start', 'list', 'requests', 'status', 'doctor', 'login'];

/** Makes a command of the program. `finish` reports the exit code of a finished run. */
export type MakeCommand = (io: Io, finish: (code: ExitCode) => void) => Command;

/** Commands of `tunnel`, grouped under the headings of the help. */
export type CommandGroups = readonly (readonly [heading: string, commands: readonly MakeCommand[]])[];

export interface ProgramOptions {
  readonly groups: CommandGroups;
  /** True if the user typed `-h` for the short help. */
  readonly isBrief: boolean;
}

export const makeProgram = (io: Io, finish: (code: ExitCode) => void, options: ProgramOptions): Command => {
  const program = addPage(new Command('tunnel').description('Hatchway: put local services online.'), PAGE)
    .version(VERSION, '-V, --version', 'Show the version')
    .addHelpCommand(helpCommand().helpGroup('Set up:'))
    .configureHelp(helpConfiguration(options.isBrief, COMMON_COMMANDS))
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
      getOutHelpWidth: () => helpWidth(io.stdout),
      getErrHelpWidth: () => helpWidth(io.stderr),
    })
    .showSuggestionAfterError(false)
    .exitOverride();
  for (const [heading, commands] of options.groups) {
    for (const command of commands) program.addCommand(command(io, finish).helpGroup(heading));
  }
  inheritSettings(program, 'tunnel', { isBrief: options.isBrief, io });
  return program;
};

const helpCommand = (): Command => new Command('help').argument('[command]').description('Show help for a command');

/**
 * Copies settings to all subcommands, because subcommands are created without a parent. An error message refers to the help of the failed
 * command. The help ends with a link to the page that explains the command.
 */
const inheritSettings = (command: Command, path: string, shared: { isBrief: boolean; io: Io }): void => {
  const { isBrief, io } = shared;
  command
    .addHelpOption(helpOption(command))
    .addHelpText('after', () => `\nDocs: ${docsAddress(placeOfCommand(path), io.platformUrl())}`)
    .showHelpAfterError(`  See \`${path} --help\`.`)
    .configureOutput({
      outputError: (text, write) => write(`tunnel: ${usageSentence(text)}${suggestionFor(text, command)}\n`),
    });
  if (isBrief) endBriefHelp(command);
  for (const below of command.commands) {
    below.copyInheritedSettings(command);
    if (below.commands.length > 0) below.addHelpCommand(helpCommand());
    inheritSettings(below, `${path} ${below.name()}`, shared);
  }
};

/**
 * Returns a suggestion for an unknown command or option. A word with the typed beginning is preferred to a word with one different
 * letter: `stat` suggests `status`, not `start`.
 */
const suggestionFor = (text: string, command: Command): string => {
  const [, kind, typed = ''] = /unknown (command|option) '(.*?)'/.exec(text) ?? [];
  if (kind === undefined) return '';
  const known =
    kind === 'command'
      ? command.commands.flatMap((below) => [below.name(), ...below.aliases()])
      : command.options.flatMap(({ long }) => long ?? []);
  const begun = known.filter((word) => typed.length >= PREFIX_LEAST && word.startsWith(typed));
  const near = begun.length === 1 ? begun[0] : nearestWord(typed, known);
  return near === undefined ? '' : ` Did you mean ${near}?`;
};

/** Minimum characters of a typed beginning for a suggestion. */
const PREFIX_LEAST = 3;

/** Returns the full command, for example `tunnel keys create`. */
const pathOf = (command: Command): string =>
  command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;

/** Runs the program with the given arguments. Resolves with the exit code. */
export const runProgram = async (args: readonly string[], io: Io, groups: CommandGroups): Promise<ExitCode> => {
  let exitCode: ExitCode = EXIT.endedAsAsked;
  let path = 'tunnel';
  const finish = (code: ExitCode): void => {
    exitCode = code;
  };
  try {
    const program = makeProgram(io, finish, { groups, isBrief: isBriefHelp(args) }).hook(
      'preAction',
      (_program, command) => {
        path = pathOf(command);
      },
    );
    await program.parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    // commander has already printed the error message, or the requested help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.endedAsAsked : EXIT.usage;
    if (error instanceof Interrupted) return exitCodeOfSignal('SIGINT');
    return reportProblem(error, io, path);
  }
};
