// Flags shared by commands that do not describe a tunnel: flags of the connection to an edge, and flags of the output.
import { type Command, InvalidArgumentError, Option } from 'commander';

/** Flags for the address of the edge, its certificate and the API key. */
export interface ServerFlags {
  readonly server?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly tls?: boolean;
  readonly caFile?: string;
  readonly insecure?: boolean;
  readonly proxy?: string;
  readonly config?: string;
}

export interface ConnectionFlags extends ServerFlags {
  readonly clientName?: string;
  readonly newName?: boolean;
  readonly wait?: boolean;
  readonly json?: boolean;
  readonly drainSecs: number;
}

/** Headings in the help of a command, in display order. */
export const FLAG_GROUPS = {
  address: 'Address:',
  service: 'Local service:',
  access: 'Access:',
  balancing: 'Load balancing:',
  health: 'Health:',
  output: 'Output:',
  connection: 'Connection:',
} as const;

export interface ServerFlagOptions {
  /** Whether to add --token-file. `tunnel mcp-publish` has a different flag with the same name. */
  readonly hasTokenFile?: boolean;
}

export const addServerFlags = (command: Command, { hasTokenFile = true }: ServerFlagOptions = {}): Command => {
  command
    .optionsGroup(FLAG_GROUPS.connection)
    .option('--server <host:port>', 'Edge (default: config.yml or 127.0.0.1:4040)')
    .option('--token <key>', `API key (visible in \`ps\`; prefer ${hasTokenFile ? '--token-file' : 'TUNNEL_API_KEY'})`);
  if (hasTokenFile) command.option('--token-file <file>', 'File with the API key');
  return command
    .option('--tls', 'Use TLS even for a server on this computer')
    .option('--no-tls', 'Disable TLS; the API key is sent unencrypted')
    .option('--ca-file <file>', 'Trust the CA certificates in this PEM file')
    .option('--insecure', 'Accept any certificate (test servers only)')
    .option(...PROXY_FLAG)
    .option('--config <file>', 'Config file (default: ~/.tunnel/config.yml)');
};

/**
 * The --proxy flag. The URL is checked when a connection is made, because an error of commander would print the URL with a password in
 * it.
 */
export const PROXY_FLAG = ['--proxy <url>', 'Connect through this HTTP or SOCKS5 proxy, or none'] as const;

export const addConnectionFlags = (command: Command, options: ServerFlagOptions = {}): Command =>
  addServerFlags(addJsonFlag(command), options)
    .option('--client-name <name>', 'Name of this computer in lists (default: the host name)')
    .option('--wait', 'Keep retrying until the server is reachable')
    .addOption(
      new Option('--drain-secs <seconds>', 'Time for open connections to finish on shutdown')
        .default(30)
        .argParser(wholeNumber(0, 86_400)),
    );

/** Adds --new-name, for commands with tunnels that get a random name or port from the edge. */
export const addNewNameFlag = (command: Command): Command =>
  command.optionsGroup(FLAG_GROUPS.address).option('--new-name', 'Use a new random name or port');

const addJsonFlag = (command: Command): Command =>
  command.optionsGroup(FLAG_GROUPS.output).option('--json', 'Print one JSON event per line');

export const wholeNumber =
  (least: number, most: number) =>
  (text: string): number => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`Use ${least}-${most}.`);
  };

export const portNumber = wholeNumber(1, 65_535);

export interface RequestFlags {
  /** Whether to start the local inspector. */
  readonly inspect: boolean;
  readonly quiet?: boolean;
}

/** Adds the flags of commands that can open HTTP tunnels. */
export const addRequestFlags = (command: Command): Command =>
  command
    .optionsGroup(FLAG_GROUPS.output)
    .option('--no-inspect', 'Turn off the local inspector')
    .option('--quiet', 'Hide request logs');

/** Flags for extra output of a run. */
export interface ComfortFlags {
  readonly qr?: boolean;
  readonly open?: boolean;
  readonly logFile?: string;
}

export const addComfortFlags = (command: Command): Command =>
  command
    .optionsGroup(FLAG_GROUPS.output)
    .option('--qr', 'Show a QR code of the first public URL')
    .option('--log-file <file>', 'Also write the --json events to this file');

/** Adds --open, for commands with tunnels that a browser can open. */
export const addOpenFlag = (command: Command): Command =>
  command.optionsGroup(FLAG_GROUPS.output).option('--open', 'Open the first HTTP tunnel in the browser');
