// The commands of `tunnel`, one row each, and the program made from them. No code in this file ends the process.
import { Command } from 'commander';
import type { ExitCode } from './io/exit-codes.ts';
import type { Io } from './io/io.ts';
import { reportProblem } from './io/problem-report.ts';
import { type CommandGroups, type MakeCommand, makeProgram, runProgram } from './program.ts';

/**
 * A row of the table: name, aliases and arguments as the help of `tunnel` shows them, one line of description, and the function that loads
 * the command. A run loads only the requested command, because loading all of them takes longer than most commands do.
 */
type Row = readonly [term: string, summary: string, load: () => Promise<MakeCommand>];

const published = (kind: 'http' | 'files' | 'tcp' | 'tls' | 'udp') => async (): Promise<MakeCommand> =>
  (await import('./commands/publish.ts')).publishCommand(kind);

/** Commands by heading, in the order of `tunnel --help`. Commands for newcomers come first. */
const TABLE: readonly (readonly [heading: string, rows: readonly Row[]])[] = [
  [
    'Share a local service:',
    [
      ['http <port>', 'Publish a local website, API or webhook', published('http')],
      ['files <dir>', 'Publish a folder as a website', published('files')],
      ['tcp <port>', 'Publish a local TCP service (SSH, a database)', published('tcp')],
      ['tls <port>', 'Publish a local TLS service, encrypted end to end', published('tls')],
      ['udp <port>', 'Publish a local UDP service (DNS, games, WireGuard)', published('udp')],
      [
        'p2p',
        'Connect two computers, directly if possible',
        async () => (await import('./commands/p2p.ts')).p2pCommand,
      ],
      [
        'start [name...]',
        'Open the tunnels in config.yml',
        async () => (await import('./commands/start.ts')).startCommand,
      ],
    ],
  ],
  [
    'Inspect:',
    [
      ['list', 'List open tunnels of your account', async () => (await import('./commands/list.ts')).listCommand],
      [
        'close <tunnel...>',
        'Close tunnels of your account on any computer',
        async () => (await import('./commands/close.ts')).closeCommand,
      ],
      [
        'requests <tunnel>',
        'Show captured requests of a tunnel, oldest first',
        async () => (await import('./commands/requests.ts')).requestsCommand,
      ],
      [
        'replay <id>',
        'Send a captured request to the local service again',
        async () => (await import('./commands/replay.ts')).replayCommand,
      ],
      [
        'status',
        'Show the clients running on this computer',
        async () => (await import('./commands/status.ts')).statusCommand,
      ],
      ['logs', 'Show the log of a running client', async () => (await import('./commands/logs.ts')).logsCommand],
      [
        'groups|pools',
        'Show load-balanced groups and their members',
        async () => (await import('./commands/groups.ts')).groupsCommand,
      ],
      ['doctor', 'Find out why tunnels do not work', async () => (await import('./commands/doctor.ts')).doctorCommand],
    ],
  ],
  [
    'AI agents (MCP):',
    [
      [
        'mcp',
        'Let an AI agent open tunnels and read requests',
        async () => (await import('./commands/mcp.ts')).mcpCommand,
      ],
      [
        'mcp-publish <command...>',
        'Publish a stdio MCP server at a public URL',
        async () => (await import('./commands/mcp-publish.ts')).mcpPublishCommand,
      ],
    ],
  ],
  [
    'Change a running client:',
    [
      ['add', 'Add a tunnel to a running client', async () => (await import('./commands/add.ts')).addTunnelCommand],
      [
        'remove <name>',
        'Close a tunnel of a running client',
        async () => (await import('./commands/control.ts')).removeCommand,
      ],
      [
        'reload',
        'Reload config.yml in a running client',
        async () => (await import('./commands/control.ts')).reloadCommand,
      ],
      [
        'ready',
        'Check that a client and its tunnels are ready',
        async () => (await import('./commands/ready.ts')).readyCommand,
      ],
      [
        'stop',
        'Stop a running client; open connections can finish',
        async () => (await import('./commands/control.ts')).stopCommand,
      ],
    ],
  ],
  [
    'Account:',
    [
      ['login', 'Sign in and set up this computer', async () => (await import('./commands/login.ts')).loginCommand],
      [
        'logout',
        'Sign out (tunnels and the API key keep working)',
        async () => (await import('./commands/login.ts')).logoutCommand,
      ],
      ['keys', 'List, create and revoke API keys', async () => (await import('./commands/keys.ts')).keysCommand],
      ['usage', "Show the account's usage", async () => (await import('./commands/usage.ts')).usageCommand],
      [
        'billing',
        'Show plan and costs, or set a spend cap',
        async () => (await import('./commands/billing.ts')).billingCommand,
      ],
    ],
  ],
  [
    'Names and ports:',
    [
      [
        'reserve [name]',
        'Reserve a name or port permanently',
        async () => (await import('./commands/reservations.ts')).reserveCommand,
      ],
      [
        'reservations',
        'List your reserved and held names and ports',
        async () => (await import('./commands/reservations.ts')).reservationsCommand,
      ],
      [
        'release <name>',
        'Release a reserved or held name or port',
        async () => (await import('./commands/reservations.ts')).releaseCommand,
      ],
      [
        'domains',
        'List, add, check and remove your own domains',
        async () => (await import('./commands/domains.ts')).domainsCommand,
      ],
    ],
  ],
  [
    'Set up:',
    [
      [
        'init',
        'Create config.yml from a server address and API key',
        async () => (await import('./commands/init.ts')).initCommand,
      ],
      ['check', 'Check config.yml for errors', async () => (await import('./commands/start.ts')).checkCommand],
      [
        'group-key',
        'Generate the shared key of a group',
        async () => (await import('./commands/groups.ts')).groupKeyCommand,
      ],
      [
        'policy',
        'Check and test policy files offline',
        async () => (await import('./commands/policy.ts')).policyCommand,
      ],
      [
        'service <action>',
        'Run `tunnel start` as a systemd service',
        async () => (await import('./commands/service.ts')).serviceCommand,
      ],
      [
        'completion <shell>',
        'Print a shell completion script',
        async () => (await import('./commands/completion.ts')).completionCommand(buildProgram),
      ],
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

/** Returns true if `word` is the name or an alias of the row's command. */
const isNamed = ([term]: Row, word: string | undefined): boolean =>
  word !== undefined && (term.split(' ', 1)[0] ?? '').split('|').includes(word);

const groupsFor = (isLoaded: (row: Row) => boolean): Promise<CommandGroups> =>
  Promise.all(
    TABLE.map(async ([heading, rows]) => {
      const commands = rows.map(async (row) => (isLoaded(row) ? row[2]() : () => outline(row)));
      return [heading, await Promise.all(commands)] as const;
    }),
  );

/** Makes the program with every command loaded, for the reference in the docs and for shell completion. */
export const buildProgram = async (io: Io, finish: (code: ExitCode) => void): Promise<Command> =>
  makeProgram(io, finish, { groups: await groupsFor(() => true), isBrief: false });

/** Returns the command that the arguments name, also in `tunnel help http`. The program has no options with a value before a command. */
const requested = (args: readonly string[]): string | undefined => {
  const [first, second] = args.filter((arg) => !arg.startsWith('-'));
  return first === 'help' ? second : first;
};

/** Runs the program with the given arguments. Resolves with the exit code. */
export const run = async (args: readonly string[], io: Io): Promise<ExitCode> => {
  try {
    // Without a terminal, the help is more useful than a suggestion.
    if (args.length === 0 && io.stdout.isTTY === true) {
      return await (await import('./commands/status.ts')).showNextStep(io);
    }
  } catch (error) {
    return reportProblem(error, io, 'tunnel');
  }
  const name = requested(args);
  return runProgram(args, io, await groupsFor((row) => isNamed(row, name)));
};
