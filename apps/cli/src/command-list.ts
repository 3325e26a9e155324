// The list of the commands of `tunnel`, and the program made from the list. No code in this file ends the process.
import { Command } from 'commander';
import type { ExitCode } from './io/exit-codes.ts';
import type { Io } from './io/io.ts';
import { type CommandGroups, type MakeCommand, runProgram } from './program.ts';

/** Name, aliases and arguments of a command as the help of `tunnel` shows them, and one line of description. */
type Row = readonly [term: string, summary: string];

/** Returns the function that loads a command, by the command's name. Undefined if this program does not include the command. */
export type LoaderOf = (name: string) => (() => Promise<MakeCommand>) | undefined;

/** Commands by heading, in the order of `tunnel --help`. Commands for newcomers come first. */
const TABLE: readonly (readonly [heading: string, rows: readonly Row[]])[] = [
  [
    'Share a local service:',
    [
      ['http <port>', 'Publish a local website, API or webhook'],
      ['files <dir>', 'Publish a folder as a website'],
      ['tcp <port>', 'Publish a local TCP service (SSH, a database)'],
      ['tls <port>', 'Publish a local TLS service, encrypted end to end'],
      ['udp <port>', 'Publish a local UDP service (DNS, games, WireGuard)'],
      ['p2p', 'Connect two computers, directly if possible'],
      ['start [name...]', 'Open the tunnels in config.yml'],
    ],
  ],
  [
    'Inspect:',
    [
      ['list', 'List open tunnels of your account'],
      ['close <tunnel...>', 'Close tunnels of your account on any computer'],
      ['requests <tunnel>', 'Show captured requests of a tunnel, oldest first'],
      ['replay <id>', 'Send a captured request to the local service again'],
      ['status', 'Show the clients running on this computer'],
      ['logs', 'Show the log of a running client'],
      ['groups|pools', 'Show load-balanced groups and their members'],
      ['doctor', 'Find out why tunnels do not work'],
    ],
  ],
  [
    'AI agents (MCP):',
    [
      ['mcp', 'Let an AI agent open tunnels and read requests'],
      ['mcp-publish <command...>', 'Publish a stdio MCP server at a public URL'],
    ],
  ],
  [
    'Change a running client:',
    [
      ['add', 'Add a tunnel to a running client'],
      ['remove <name>', 'Close a tunnel of a running client'],
      ['reload', 'Reload config.yml in a running client'],
      ['ready', 'Check that a client and its tunnels are ready'],
      ['stop', 'Stop a running client; open connections can finish'],
    ],
  ],
  [
    'Account:',
    [
      ['login', 'Sign in and set up this computer'],
      ['logout', 'Sign out (tunnels and the API key keep working)'],
      ['keys', 'List, create and revoke API keys'],
      ['usage', "Show the account's usage"],
      ['billing', 'Show plan and costs, or set a spend cap'],
    ],
  ],
  [
    'Names and ports:',
    [
      ['reserve [name]', 'Reserve a name or port permanently'],
      ['reservations', 'List your reserved and held names and ports'],
      ['release <name>', 'Release a reserved or held name or port'],
      ['domains', 'List, add, check and remove your own domains'],
    ],
  ],
  [
    'Set up:',
    [
      ['init', 'Create config.yml from a server address and API key'],
      ['check', 'Check config.yml for errors'],
      ['group-key', 'Generate the shared key of a group'],
      ['policy', 'Check and test policy files offline'],
      ['service <action>', 'Run `tunnel start` as a systemd service'],
      ['completion <shell>', 'Print a shell completion script'],
    ],
  ],
];

/** Makes a command that only has its line in the help of `tunnel`, because its code is not loaded. */
const outline = ([term, summary]: Row): Command => {
  const [names = '', ...terms] = term.split(' ');
  const [name = '', ...aliases] = names.split('|');
  const command = new Command(name).aliases(aliases).description(summary);
  for (const argument of terms) command.argument(argument);
  return command;
};

const namesOf = ([term]: Row): readonly string[] => (term.split(' ', 1)[0] ?? '').split('|');

/** Makes the commands. Only commands with `isLoaded` are loaded; the others have only their line in the help of `tunnel`. */
export const makeGroups = (
  loaderOf: LoaderOf,
  isLoaded: (names: readonly string[]) => boolean,
  table = TABLE,
): Promise<CommandGroups> =>
  Promise.all(
    table.map(async ([heading, rows]) => {
      const commands = rows.map(async (row) => {
        const names = namesOf(row);
        const load = isLoaded(names) ? loaderOf(names[0] ?? '') : undefined;
        return load === undefined ? () => outline(row) : load();
      });
      return [heading, await Promise.all(commands)] as const;
    }),
  );

/** Returns the rows of a command. */
const rowsOf = (name: string): typeof TABLE =>
  TABLE.flatMap(([heading, rows]) => {
    const found = rows.filter((row) => namesOf(row).includes(name));
    return found.length === 0 ? [] : [[heading, found] as const];
  });

/** Returns the command that the arguments name, also in `tunnel help http`. The program has no options with a value before a command. */
const requested = (args: readonly string[]): string | undefined => {
  const [first, second] = args.filter((arg) => !arg.startsWith('-'));
  return first === 'help' ? second : first;
};

/**
 * Runs the program with the given arguments. Loads only the requested command, because loading all commands takes longer than most
 * commands do. If the arguments begin with the command, nothing shows the lines of the others, which are then not made. Resolves with the
 * exit code.
 */
export const runCommand = async (args: readonly string[], io: Io, loaderOf: LoaderOf): Promise<ExitCode> => {
  const name = requested(args);
  const isRequested = (names: readonly string[]): boolean => name !== undefined && names.includes(name);
  const only = name === undefined || name !== args[0] ? [] : rowsOf(name);
  return runProgram(args, io, await makeGroups(loaderOf, isRequested, only.length === 0 ? TABLE : only));
};
