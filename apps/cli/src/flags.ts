// The flags that commands share: of an edge and the connection to it, of what is shown of requests, of groups and health checks.
import type { HealthCheck, TunnelSpec } from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import { pathFrom, readGroupKeyFile, Secret } from '@tunnel/runtime';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Io } from './io.ts';

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
    .option(...PROXY_FLAG)
    .option('--config <file>', 'config file (default: ~/.tunnel/config.yml when it is there)');

/** Its value is looked at when a connection is made: a refusal here would repeat a password that stands in it. */
export const PROXY_FLAG = [
  '--proxy <url>',
  'go through this http, https, socks5 or socks5h proxy; none: through none',
] as const;

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

export interface RequestFlags {
  /** false: without the local inspector. */
  readonly inspect: boolean;
  readonly quiet?: boolean;
}

/** Of commands whose tunnels may carry HTTP. */
export const addRequestFlags = (command: Command): Command =>
  command
    .option('--no-inspect', 'without the local inspector page')
    .option('--quiet', 'without a line or an event for each request');

/** What a run may do besides. */
export interface ComfortFlags {
  readonly qr?: boolean;
  readonly open?: boolean;
  readonly logFile?: string;
}

export const addComfortFlags = (command: Command): Command =>
  command
    .option('--qr', 'show the first public URL as a QR code')
    .option('--open', 'open the first HTTP tunnel in the browser')
    .option(
      '--log-file <file>',
      'also write the events of --json to this file: 10 MiB, then the next; 5 files are kept',
    );

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
    throw new InvalidArgumentError(`It must be a number of seconds above 0, at most ${most}.`);
  };

const probe = (text: string): Pick<HealthCheck, 'type' | 'path'> => {
  if (text === 'tcp') return { type: 'tcp' };
  if (text.startsWith('http:/')) return { type: 'http', path: text.slice('http:'.length) };
  throw new InvalidArgumentError('It must be tcp, or http:/ and the rest of a path.');
};

/** None takes the group key itself: a process list shows it. */
export const addGroupFlags = (command: Command): Command =>
  command
    .option('--group <name>', 'join this group: visitors are spread over its healthy members')
    .option('--group-key-file <file>', 'file that holds the key that all members of the group share')
    .option('--group-key-env <variable>', 'variable that holds it')
    .option('--health <tcp|http:/path>', 'probe the local service: open a connection, or GET this path', probe)
    .option('--health-interval <seconds>', 'from one probe to the next (default: 10)', seconds(86_400))
    .option('--health-timeout <seconds>', 'for one probe (default: 3)', seconds(3600))
    .option('--health-max-failed <n>', 'failures in a row that make it unhealthy (default: 3)', wholeNumber(1, 1000))
    .option('--health-any-status', 'any HTTP answer is a good one, not only 2xx')
    .option('--alert-webhook <url>', 'told by the edge when the group has no healthy member left');

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
  if (file !== undefined && variable !== undefined)
    throw misuse('--group-key-file and --group-key-env exclude each other');
  const given = file === undefined ? variable : file;
  if (group !== undefined && given === undefined) throw misuse('--group needs --group-key-file or --group-key-env');
  if (group === undefined && given !== undefined) throw misuse('a group key goes with --group');
  if (file !== undefined) {
    const answer = readGroupKeyFile(pathFrom(io.cwd, file, io.home));
    if ('key' in answer) return answer.key;
    throw misuse(`cannot read the group key from ${file}: ${answer.reason}`);
  }
  if (variable === undefined) return undefined;
  const text = io.env[variable] ?? '';
  if (text === '') throw misuse(`--group-key-env: the variable ${variable} is not set`);
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
  if (flags.healthAnyStatus === true && health?.type !== 'http') return '--health-any-status needs --health http:/path';
  if (health !== undefined) return undefined;
  if (flags.healthInterval !== undefined) return '--health-interval needs --health';
  if (flags.healthTimeout !== undefined) return '--health-timeout needs --health';
  return flags.healthMaxFailed === undefined ? undefined : '--health-max-failed needs --health';
};

const misuse = (reason: string): Fault => new Fault('CLIENT_USAGE', { reason });
