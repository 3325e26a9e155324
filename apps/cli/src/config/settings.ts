// Connection settings from the command line, the environment and config.yml: server, API key, proxy, and the files for state and log.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { type Proxy, type ProxyFor, parseServerAddress, proxyFor } from '@tunnel/client';
import { pathFrom } from '@tunnel/config/layers';
import { Fault } from '@tunnel/errors';
import { Secret } from '@tunnel/runtime';
import type { Io } from '../io/io.ts';
import { misuse } from '../io/problem-report.ts';
import { defaultConfigPath, type LoadedConfig, loadConfig } from './file.ts';
import type { ComfortFlags, ConnectionFlags, ServerFlags } from './flags.ts';

export interface ConnectionSettings {
  readonly server: string;
  readonly token: Secret;
  readonly tls: boolean | undefined;
  readonly insecure: boolean;
  readonly caFile: string | undefined;
  /** Proxy for the connection to the server. Null for a direct connection. */
  readonly proxy: Proxy | null;
  /** State folder beside config.yml, where a restarted client finds its resume secret. */
  readonly stateDir: string;
  /** Path of the log file, from --log-file or else from `log_file` of config.yml. */
  readonly logFile: string | undefined;
  /** Display name of the computer, from --client-name. Default: the host name. */
  readonly clientName?: string;
}

const DEFAULT_SERVER = '127.0.0.1:4040';

type SettingsFlags = ServerFlags & Pick<ComfortFlags, 'logFile'> & Partial<Pick<ConnectionFlags, 'clientName'>>;

/** Formats a path for display, such as `~/.tunnel/key`. */
export const shownPath = (path: string, { home }: Pick<Io, 'home'>): string =>
  path.startsWith(`${home}${sep}`) ? `~${path.slice(home.length)}` : path;

export const resolveSettings = (flags: SettingsFlags, config: LoadedConfig | null, io: Io): ConnectionSettings => ({
  ...resolveServer(flags, config, io),
  token: findToken(flags, config, io).token,
});

/** Returns the connection settings that do not need an API key. */
export const resolveServer = (
  flags: SettingsFlags,
  config: LoadedConfig | null,
  io: Io,
): Omit<ConnectionSettings, 'token'> => {
  const folder = folderOf(config, io);
  const caFile = flags.caFile === undefined ? config?.values.ca_file : inFolder(io.cwd, flags.caFile, io);
  const server = flags.server ?? config?.values.server ?? DEFAULT_SERVER;
  return {
    server,
    tls: flags.tls ?? config?.values.tls,
    insecure: flags.insecure ?? config?.values.insecure ?? false,
    caFile: caFile === undefined ? undefined : inFolder(folder, caFile, io),
    proxy: resolveProxy(flags.proxy, config, io)(parseServerAddress(server)),
    stateDir: join(folder, 'state'),
    logFile: findLogFile(flags.logFile, config, io),
    ...(flags.clientName === undefined ? {} : { clientName: flags.clientName }),
  };
};

const folderOf = (config: LoadedConfig | null, io: Io): string => dirname(config?.path ?? defaultConfigPath(io));

/** Returns the path of the log file, from --log-file or else from `log_file` of config.yml. */
export const findLogFile = (flag: string | undefined, config: LoadedConfig | null, io: Io): string | undefined => {
  if (flag !== undefined) return inFolder(io.cwd, flag, io);
  const { log_file: file } = config?.values ?? {};
  return file === undefined ? undefined : inFolder(folderOf(config, io), file, io);
};

/**
 * Chooses the proxy: --proxy, then `proxy` of config.yml, then the environment. If the URL has no user and password, `proxy_auth_file` of
 * config.yml supplies them.
 */
export const resolveProxy = (flag: string | undefined, config: LoadedConfig | null, io: Io): ProxyFor => {
  const fromFile = config?.values.proxy.reveal() ?? '';
  const authFile = config?.values.proxy_auth_file;
  return proxyFor({
    explicit: (flag ?? '') === '' ? fromFile : (flag ?? ''),
    explicitSource: (flag ?? '') === '' ? '`proxy` of config.yml' : '--proxy',
    env: io.env,
    auth: () =>
      authFile === undefined ? undefined : readProxyAuth(inFolder(dirname(config?.path ?? ''), authFile, io)),
  });
};

export interface ProxyFlags {
  readonly proxy?: string;
  readonly config?: string;
}

/** Chooses the proxy for commands that need nothing else from config.yml. The file is read when the first connection is made. */
export const proxyOfAccount = (flags: ProxyFlags, io: Io): ProxyFor => {
  const { config } = flags;
  // With `keys create --save`, the command may be about to create the config file.
  const isThere = config !== undefined && existsSync(inFolder(io.cwd, config, io));
  return (target) => resolveProxy(flags.proxy, loadConfig(isThere ? config : undefined, io), io)(target);
};

const readProxyAuth = (file: string): Secret => {
  try {
    return new Secret(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Fault('CONFIG_FILE_UNREADABLE', { file, reason: readFailure(error) }, { cause: error });
  }
};

export interface FoundToken {
  readonly token: Secret;
  /** Display name of the key's source, such as `--token` or `TUNNEL_API_KEY`. */
  readonly source: string;
  /** File that contains the key, for a check of the file's mode. Null if the key does not come from a file. */
  readonly file: string | null;
}

/** Returns the API key from --token or --token-file, then from TUNNEL_API_KEY, then from config.yml. */
export const findToken = (flags: ServerFlags, config: LoadedConfig | null, io: Io): FoundToken => {
  if (flags.token !== undefined && flags.tokenFile !== undefined) {
    throw misuse('use --token or --token-file, not both.');
  }
  if (flags.token !== undefined) return { token: new Secret(flags.token), source: '--token', file: null };
  if (flags.tokenFile !== undefined) return readToken(inFolder(io.cwd, flags.tokenFile, io), '--token-file');
  const fromEnvironment = io.env['TUNNEL_API_KEY'] ?? '';
  if (fromEnvironment !== '') return { token: new Secret(fromEnvironment), source: 'TUNNEL_API_KEY', file: null };
  const { values, path = null } = config ?? {};
  if (values?.auth_token !== undefined) return { token: values.auth_token, source: 'auth_token', file: path };
  if (values?.auth_token_file !== undefined) {
    return readToken(inFolder(folderOf(config, io), values.auth_token_file, io), 'auth_token_file');
  }
  throw new Fault('CLIENT_KEY_MISSING');
};

export const readToken = (file: string, source: string): FoundToken => {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new Fault('CLIENT_TOKEN_FILE', { file, reason: readFailure(error) }, { cause: error });
  }
  if (text === '') throw new Fault('CLIENT_TOKEN_FILE', { file, reason: 'the file is empty' });
  return { token: new Secret(text), source, file };
};

const readFailure = (error: unknown): string => {
  const { code = 'unreadable' } = error as NodeJS.ErrnoException;
  return REASONS[code] ?? code;
};

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
  EISDIR: 'the path is a folder',
};

/** Resolves a path. Paths in config.yml are relative to the file's folder. Paths in flags are relative to the working directory. */
const inFolder = (folder: string, path: string, io: Io): string => pathFrom(folder, path, io.home);
