// The flags that the commands which speak to an edge share.
import { type Command, InvalidArgumentError, Option } from 'commander';

/** Where the edge is, how it is trusted, and who asks. */
export interface ServerFlags {
  readonly server?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly tls?: boolean;
  readonly caFile?: string;
  readonly insecure?: boolean;
  readonly config?: string;
}

export interface ConnectionFlags extends ServerFlags {
  readonly wait?: boolean;
  readonly json?: boolean;
  readonly drainSecs: number;
}

export const addServerFlags = (command: Command): Command =>
  command
    .option('--server <host:port>', 'control port of the edge (default: config.yml, else 127.0.0.1:4040)')
    .option('--token <key>', 'the key; a process list shows it, so rather use --token-file or TUNNEL_API_KEY')
    .option('--token-file <file>', 'file that holds the key')
    .option('--tls', 'speak TLS also to a loopback address')
    .option('--no-tls', 'send everything in clear, the key too')
    .option('--ca-file <file>', 'PEM file of the authorities to trust')
    .option('--insecure', 'accept any certificate (test servers only)')
    .option('--config <file>', 'config file (default: ~/.tunnel/config.yml when it is there)');

export const addConnectionFlags = (command: Command): Command =>
  addServerFlags(command)
    .option('--wait', 'keep trying for ever to reach the server at the start')
    .option('--json', 'print one JSON event a line')
    .addOption(
      new Option('--drain-secs <seconds>', 'how long open connections may take at the end')
        .default(30)
        .argParser(wholeNumber(0, 86_400)),
    );

export const wholeNumber =
  (least: number, most: number) =>
  (text: string): number => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };

export const portNumber = wholeNumber(1, 65_535);
