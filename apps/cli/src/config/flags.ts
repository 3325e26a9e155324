// The flags that commands share: of an edge and the connection to it, of what is shown of requests, of groups and health checks.
import type { HealthCheck, TunnelSpec } from '@tunnel/client';
import { pathFrom, readGroupKeyFile } from '@tunnel/config/layers';
import { Secret } from '@tunnel/runtime';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Io } from '../io/io.ts';
import { misuse } from '../io/problem-report.ts';

/** Where the edge is, how it is trusted, and who asks. */
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

/** The headings of a command's help, in the order in which they come. */
export const FLAG_GROUPS = {
  address: 'Address:',
  service: 'Local service:',
  access: 'Access:',
  balancing: 'Load balancing:',
  health: 'Health:',
  output: 'Output:',
  connection: 'Connection:',
} as const;

/** Which public host a tunnel is to have. */
export interface HostFlags {
  readonly subdomain?: string;
  readonly domain?: string;
}

/** `otherwise`: what happens without them, in parentheses; may be empty. */
export const addHostFlags = (command: Command, otherwise: string): Command =>
  command
    .optionsGroup(FLAG_GROUPS.address)
    .option('--subdomain <name>', `Subdomain to use${otherwise}`)
    .option('--domain <host>', 'Your own domain instead (see `tunnel domains`)');

/** What they say of a tunnel. Throws a Fault for both. */
export const hostSpecOf = ({ subdomain, domain }: HostFlags): Pick<TunnelSpec, 'subdomain' | 'domain'> => {
  if (subdomain !== undefined && domain !== undefined) throw misuse('use --domain or --subdomain, not both.');
  return {
    ...(subdomain === undefined ? {} : { subdomain }),
    ...(domain === undefined ? {} : { domain }),
  };
};

export interface ServerFlagOptions {
  /** false: the command has a flag of this name that means something else. */
  readonly hasTokenFile?: boolean;
}

export const addServerFlags = (command: Command, { hasTokenFile = true }: ServerFlagOptions = {}): Command => {
  command
    .optionsGroup(FLAG_GROUPS.connection)
    .option('--server <host:port>', 'The edge (default: config.yml or 127.0.0.1:4040)')
    .option('--token <key>', `API key (visible in \`ps\`; prefer ${hasTokenFile ? '--token-file' : 'TUNNEL_API_KEY'})`);
  if (hasTokenFile) command.option('--token-file <file>', 'File with the API key');
  return command
    .option('--tls', 'Use TLS even to this machine')
    .option('--no-tls', 'Send everything unencrypted, even the API key')
    .option('--ca-file <file>', 'Trust the authorities in this PEM file')
    .option('--insecure', 'Accept any certificate (test servers only)')
    .option(...PROXY_FLAG)
    .option('--config <file>', 'Config file (default: ~/.tunnel/config.yml)');
};

/** Its value is looked at when a connection is made: a refusal here would repeat a password that stands in it. */
export const PROXY_FLAG = ['--proxy <url>', 'HTTP or SOCKS5 proxy to go through; none: go direct'] as const;

export const addConnectionFlags = (command: Command, options: ServerFlagOptions = {}): Command =>
  addServerFlags(addJsonFlag(command), options)
    .option('--client-name <name>', 'Name of this computer (default: its host name)')
    .option('--wait', 'Retry until the server is reachable')
    .addOption(
      new Option('--drain-secs <seconds>', 'Time for open connections to finish at the end')
        .default(30)
        .argParser(wholeNumber(0, 86_400)),
    );

/** Of commands that open tunnels whose name or port the edge may choose. */
export const addNewNameFlag = (command: Command): Command =>
  command.optionsGroup(FLAG_GROUPS.address).option('--new-name', 'Get a new random name or port, not the last one');

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
  /** false: without the local inspector. */
  readonly inspect: boolean;
  readonly quiet?: boolean;
}

/** Of commands whose tunnels may carry HTTP. */
export const addRequestFlags = (command: Command): Command =>
  command
    .optionsGroup(FLAG_GROUPS.output)
    .option('--no-inspect', 'No local inspector page')
    .option('--quiet', 'Hide request logs');

/** What a run may do besides. */
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

/** For commands whose tunnels a browser can open. */
export const addOpenFlag = (command: Command): Command =>
  command.optionsGroup(FLAG_GROUPS.output).option('--open', 'Open the first HTTP tunnel in the browser');

export interface GroupFlags {
  readonly group?: string;
  readonly groupKeyFile?: string;
  readonly groupKeyEnv?: string;
  readonly health?: Pick<HealthCheck, 'type' | 'path'>;
  readonly healthInterval?: number;
  readonly healthTimeout?: number;
  readonly healthMaxFailed?: number;
  readonly healthAnyStatus?: boolean;
  readonly alertWebhook?: string;
}

const seconds =
  (most: number) =>
  (text: string): number => {
    const value = /^\d{1,6}(\.\d{1,6})?$/.test(text) ? Number(text) : Number.NaN;
    if (value > 0 && value <= most) return value;
    throw new InvalidArgumentError(`Use seconds above 0, at most ${most}.`);
  };

const probe = (text: string): Pick<HealthCheck, 'type' | 'path'> => {
  if (text === 'tcp') return { type: 'tcp' };
  if (text.startsWith('http:/')) return { type: 'http', path: text.slice('http:'.length) };
  throw new InvalidArgumentError('Use tcp, or http:/ and the rest of a path.');
};

/** No flag takes the group key itself, because a process list would show it. */
export const addMemberFlags = (command: Command): Command =>
  command
    .optionsGroup(FLAG_GROUPS.balancing)
    .option('--group <name>', 'Join this group: its healthy members share the visitors')
    .option('--group-key-file <file>', 'File with the key that all members share')
    .option('--group-key-env <variable>', 'Variable with that key');

/** For tunnels to a service whose health the client can check. */
export const addGroupFlags = (command: Command): Command =>
  addMemberFlags(command)
    .option('--alert-webhook <url>', 'URL to call when no member is healthy')
    .optionsGroup(FLAG_GROUPS.health)
    .option('--health <tcp|http:/path>', 'Check the local service: connect, or GET this path', probe)
    .option('--health-interval <seconds>', 'Time between checks (default: 10)', seconds(86_400))
    .option('--health-timeout <seconds>', 'Time limit of a check (default: 3)', seconds(3600))
    .option('--health-max-failed <n>', 'Failures in a row until unhealthy (default: 3)', wholeNumber(1, 1000))
    .option('--health-any-status', 'Accept any HTTP status, not only 2xx');

/** What they say of a tunnel. Throws a Fault for flags that do not go together. */
export const groupSpecOf = (
  flags: GroupFlags,
  io: Pick<Io, 'env' | 'cwd' | 'home'>,
): Pick<TunnelSpec, 'group' | 'groupKey' | 'healthCheck'> => {
  const groupKey = findKey(flags, io);
  const healthCheck = healthCheckOf(flags);
  return {
    ...(flags.group === undefined ? {} : { group: flags.group }),
    ...(groupKey === undefined ? {} : { groupKey }),
    ...(healthCheck === undefined ? {} : { healthCheck }),
  };
};

const findKey = (flags: GroupFlags, io: Pick<Io, 'env' | 'cwd' | 'home'>): Secret | undefined => {
  const { group, groupKeyFile: file, groupKeyEnv: variable } = flags;
  if (file !== undefined && variable !== undefined) throw misuse('use --group-key-file or --group-key-env, not both.');
  const given = file === undefined ? variable : file;
  if (group !== undefined && given === undefined) throw misuse('--group needs --group-key-file or --group-key-env.');
  if (group === undefined && given !== undefined) throw misuse('a group key needs --group.');
  if (file !== undefined) {
    const answer = readGroupKeyFile(pathFrom(io.cwd, file, io.home));
    if ('key' in answer) return answer.key;
    throw misuse(`cannot read the group key from ${file}: ${answer.reason}.`);
  }
  if (variable === undefined) return undefined;
  const text = io.env[variable] ?? '';
  if (text === '') throw misuse(`the variable ${variable} is not set (--group-key-env).`);
  return new Secret(text);
};

const healthCheckOf = (flags: GroupFlags): HealthCheck | undefined => {
  const { health, alertWebhook } = flags;
  const idle = idleFlag(flags);
  if (idle !== undefined) throw misuse(idle);
  if (health === undefined && alertWebhook === undefined) return undefined;
  return {
    ...health,
    intervalSecs: flags.healthInterval,
    timeoutSecs: flags.healthTimeout,
    maxFailed: flags.healthMaxFailed,
    expect2xx: flags.healthAnyStatus === true ? false : undefined,
    alertWebhook,
  };
};

/** A flag that would change nothing was meant otherwise. */
const idleFlag = ({ health, ...flags }: GroupFlags): string | undefined => {
  if (flags.healthAnyStatus === true && health?.type !== 'http')
    return '--health-any-status needs --health http:/path.';
  if (health !== undefined) return undefined;
  if (flags.healthInterval !== undefined) return '--health-interval needs --health.';
  if (flags.healthTimeout !== undefined) return '--health-timeout needs --health.';
  return flags.healthMaxFailed === undefined ? undefined : '--health-max-failed needs --health.';
};
