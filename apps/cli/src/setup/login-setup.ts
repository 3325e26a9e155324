// The setup after `tunnel login`: an API key for this computer, and the server, both saved in config.yml, so that the next command works.
import { existsSync } from 'node:fs';
import { isLoopbackHost } from '@tunnel/client';
import { clientFileKeys } from '@tunnel/config/client';
import { pathFrom } from '@tunnel/config/layers';
import type { CreatedKey, UsageRegion } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { type Secret, sha256Hex } from '@tunnel/runtime';
import { hostOf } from '../api/http-call.ts';
import type { PlatformLogin } from '../api/platform-login.ts';
import { type LoadedConfig, loadConfig } from '../config/file.ts';
import { type ConfigChanges, saveConfigKeys, writtenConfigPath } from '../config/keys.ts';
import { readToken, resolveServer, shownPath } from '../config/settings.ts';
import type { Io } from '../io/io.ts';
import { misuse, oneLine } from '../io/problem-report.ts';
import { withSingleInstanceLock } from '../io/single-instance-lock.ts';
import { withPrompt } from '../io/terminal-prompt.ts';
import { type KeyStore, keyFileIn, prepareKeyStore } from './key-store.ts';
import { isServerOf, reachableRegions, regionLines, regionNamed, serverSettings } from './login-region.ts';
import { tryConnection } from './try-connection.ts';

/** Maximum length of an API key created by a platform. A Hatchway platform creates keys of 43 characters. */
const NEW_KEY_MAX_CHARS = 1024;

export interface SetupFlags {
  readonly region?: string;
  readonly replace?: boolean;
  /** False if unencrypted connections are allowed. */
  readonly tls: boolean;
  readonly caFile?: string;
  readonly insecure?: boolean;
  readonly proxy?: string;
  readonly config?: string;
}

/** Adds the missing parts of the setup, and prints a line for each change. */
export const setUpComputer = async (login: PlatformLogin, flags: SetupFlags, io: Io): Promise<void> => {
  const say = (line: string): void => void io.stdout.write(`${line}\n`);
  const config = configOf(flags, io);
  const all = await login.call((client) => client.regions());
  const regions = reachableRegions(all, isLoopbackHost(hostOf(new URL(login.platformUrl))));
  const wanted = flags.region === undefined ? undefined : regionNamed(flags.region, regions);
  const key = await whoseKey(login, config, flags, io);
  const switches = key === 'other' && (flags.replace === true || (await asksToSwitch(config, login, io)));
  // A kept key of another account also keeps its server, even the default server without an entry in config.yml. Otherwise the key would
  // be sent to the new server.
  const isOpen = key !== 'other' || switches;
  if (!isOpen && wanted !== undefined) throw keptKey(wanted, config, io);
  // A server of another platform is replaced together with the key for the server.
  const startsOver = switches || key === 'ended';
  const region = wanted ?? (isOpen ? await chooseRegion({ regions, config, startsOver }, io) : null);
  const server = region === null ? null : serverSettings(region, trustOf(flags, config, io));
  const changes = { ...server?.changes, ...(startsOver ? otherAddresses(config, login, server !== null) : {}) };
  if (key === 'none' || key === 'ended' || switches) await makeKey(login, { flags, config, changes, say }, io);
  else {
    saveConfigKeys(writtenConfigPath(flags.config, io), changes, io);
    say(key === 'own' ? 'This computer already has an API key.' : otherKeyText(config, io));
  }
  if (region !== null) say(serverText(region, wanted === undefined && io.stdin.isTTY !== true ? regions : []));
  if (server?.isClearTextRefused === true) {
    note(`${region?.control} does not use TLS. On a network you trust, set \`tls: false\` in config.yml.`, io);
  }
  if (region === null && isOpen) noteServerKept(serverIn(config), regions, io);
};

const noteServerKept = (server: string | undefined, regions: readonly UsageRegion[], io: Io): void => {
  const [first] = regions;
  if (server === undefined) {
    note('no reachable edge is online. Set `server` in config.yml, or sign in again later.', io);
  } else if (first !== undefined && !isServerOf(server, regions)) {
    const hint = `To use ${first.control}: \`tunnel login --region ${first.region_id}\`.`;
    note(`config.yml keeps the server ${server}, which does not belong to this platform. ${hint}`, io);
  }
};

/** Returns the config file. Returns null if the file does not exist: the file given by --config may be created by this command. */
const configOf = (flags: SetupFlags, io: Io): LoadedConfig | null => {
  const file = writtenConfigPath(flags.config, io);
  return existsSync(file) ? loadConfig(file, io) : null;
};

const trustOf = (flags: SetupFlags, config: LoadedConfig | null, io: Io) => ({
  tls: config?.values.tls,
  insecure: config?.values.insecure ?? false,
  clearTextAllowed: !flags.tls,
  caFile: flags.caFile === undefined ? undefined : pathFrom(io.cwd, flags.caFile, io.home),
  isInsecureAllowed: flags.insecure === true,
});

// ---- the key ----

/**
 * Owner of the saved API key. own: this account · none: no key is saved · ended: the key was revoked · other: probably another account or
 * platform.
 */
type KeyOwner = 'own' | 'none' | 'ended' | 'other';

const whoseKey = async (
  login: PlatformLogin,
  config: LoadedConfig | null,
  flags: SetupFlags,
  io: Io,
): Promise<KeyOwner> => {
  const key = keyIn(config, io);
  if (key === null) return 'none';
  if ((await keyIdOf(login, key)) !== null) return 'own';
  // The account does not list the key: it was revoked, or belongs to another account or platform. Only the edge of the key knows.
  const proxy = flags.proxy === undefined ? {} : { proxy: flags.proxy };
  const tried = await tryConnection({ ...resolveServer(proxy, config, io), token: key }, io);
  return tried.state === 'refused' ? 'ended' : 'other';
};

/**
 * Returns the API key set in config.yml, regardless of the environment. Returns null if no key is set, or if the key file does not exist.
 */
export const keyIn = (config: LoadedConfig | null, io: Io): Secret | null => {
  const file = keyFileIn(config, io);
  if (file === null) return config?.values.auth_token ?? null;
  return existsSync(file) ? readToken(file, 'auth_token_file').token : null;
};

/** Returns the id of an API key, or null if the account has no such key. */
export const keyIdOf = async (login: PlatformLogin, key: Secret): Promise<string | null> => {
  const hash = sha256Hex(key.reveal());
  return (await login.call((client) => client.keys())).find(({ token_hash }) => token_hash === hash)?.id ?? null;
};

const asksToSwitch = async (config: LoadedConfig | null, login: PlatformLogin, io: Io): Promise<boolean> => {
  if (config === null || io.stdin.isTTY !== true) return false;
  const question = `${shownPath(config.path, io)} uses another account. Switch it to ${login.platformUrl}? [y/N] `;
  const answer = await withPrompt(io, 'Add --replace to switch.', (prompt) => prompt.ask(question));
  return /^y(es)?$/i.test(answer.trim());
};

interface NewKeyPlan {
  readonly flags: SetupFlags;
  readonly config: LoadedConfig | null;
  readonly changes: ConfigChanges;
  readonly say: (line: string) => void;
}

/**
 * Creates an API key and saves it. Two simultaneous sign-ins create only one key, because the second process finds the key of the first
 * process in config.yml.
 */
const makeKey = (login: PlatformLogin, { flags, config, changes, say }: NewKeyPlan, io: Io): Promise<void> => {
  const file = writtenConfigPath(flags.config, io);
  return withSingleInstanceLock(`${file}.key`, io, async () => {
    if (keyIn(configOf(flags, io), io)?.reveal() !== keyIn(config, io)?.reveal()) {
      return say('This computer already has an API key.');
    }
    const store = prepareKeyStore(flags.config, io, changes);
    const { token } = await createKey(login, labelOf(io));
    saveNewKey(store, token, io);
    for (const line of savedKeyLines(store, io)) say(line);
  });
};

const LABEL_MAX_CHARS = 100;

const labelOf = ({ hostName }: Io): string => oneLine(hostName).slice(0, LABEL_MAX_CHARS).trim() || 'computer';

/** Matches a valid API key. Any other text from the platform would be shown on the screen, and sent in a header. */
const IS_KEY = new RegExp(`^[\\x21-\\x7e]{1,${NEW_KEY_MAX_CHARS}}$`);

export const createKey = async (login: PlatformLogin, label: string): Promise<CreatedKey> => {
  const created = await login.call((client) => client.createKey({ label }));
  if (IS_KEY.test(created.token)) return created;
  throw new Fault('CLIENT_NOT_A_PLATFORM', { url: login.platformUrl, reason: 'the response contains no API key' });
};

export const saveNewKey = (store: KeyStore, key: string, io: Io): void => {
  try {
    store.save(key);
  } catch (error) {
    // The key has been created and cannot be shown again later, so it is printed.
    io.stdout.write(`${key}\n`);
    throw error;
  }
  if ((io.env['TUNNEL_API_KEY'] ?? '') !== '') note('TUNNEL_API_KEY is set and overrides the saved key.', io);
};

export const savedKeyLines = ({ keyFile, oldKeyFile }: KeyStore, io: Io): string[] => [
  `API key saved to ${shownPath(keyFile, io)}.`,
  ...(oldKeyFile === null ? [] : [`The previous key is in ${shownPath(oldKeyFile, io)}.`]),
];

const otherKeyText = (config: LoadedConfig | null, io: Io): string =>
  `${shownPath(config?.path ?? '', io)} keeps the API key of another account. To switch: \`tunnel login --replace\`.`;

const keptKey = ({ region_id }: UsageRegion, config: LoadedConfig | null, io: Io): Fault =>
  misuse(
    `${shownPath(config?.path ?? '', io)} keeps the API key and the server of another account. To switch both: \`tunnel login --replace --region ${region_id}\`.`,
  );

const note = (text: string, io: Io): void => void io.stderr.write(`tunnel: note: ${text}\n`);

// ---- the server ----

interface RegionChoice {
  readonly regions: readonly UsageRegion[];
  readonly config: LoadedConfig | null;
  /** True if the server of another platform must be replaced. */
  readonly startsOver: boolean;
}

/** Returns the server set in the config file, or undefined if the client uses the default server. */
const serverIn = (config: LoadedConfig | null): string | undefined =>
  config !== null && clientFileKeys(config.path).includes('server') ? config.values.server : undefined;

/** Chooses a region, and asks the user if necessary. Returns null if `server` of config.yml stays unchanged. */
const chooseRegion = async ({ regions, config, startsOver }: RegionChoice, io: Io): Promise<UsageRegion | null> => {
  const server = serverIn(config);
  if (server !== undefined && !(startsOver && !isServerOf(server, regions))) return null;
  const [first] = regions;
  if (first === undefined || regions.length === 1 || io.stdin.isTTY !== true) return first ?? null;
  io.stderr.write(`Regions:\n${regionLines(regions).join('\n')}\n`);
  const question = `Region [${first.region_id}]: `;
  return withPrompt(io, 'Add --region.', async (prompt) => {
    for (;;) {
      const typed = (await prompt.ask(question)).trim();
      const found = typed === '' ? first : regions.find(({ region_id }) => region_id === typed);
      if (found !== undefined) return found;
    }
  });
};

const serverText = ({ control, region_id }: UsageRegion, others: readonly UsageRegion[]): string =>
  [
    `Server set to ${oneLine(control)} (region ${region_id}).`,
    ...(others.length < 2
      ? []
      : [`Regions: ${others.map((one) => one.region_id).join(', ')}. Choose another with --region.`]),
  ].join(' ');

/** Returns config changes that remove addresses of the previous platform, because the new key would be sent there. */
const otherAddresses = (config: LoadedConfig | null, login: PlatformLogin, isServerNew: boolean): ConfigChanges => ({
  ...(config?.values.platform_url === undefined ? {} : { platform_url: login.platformUrl }),
  ...(config?.values.api_url === undefined || !isServerNew ? {} : { api_url: undefined }),
});

/** Returns the id of the saved API key, for `tunnel logout --revoke-key`. */
export const savedKeyId = async (login: PlatformLogin, configFlag: string | undefined, io: Io): Promise<string> => {
  const config = loadConfig(configFlag, io);
  const key = keyIn(config, io);
  if (key === null) throw misuse('config.yml has no API key. Run `tunnel logout` without --revoke-key.');
  const id = await keyIdOf(login, key);
  if (id !== null) return id;
  throw misuse('the API key in config.yml does not belong to this account. See `tunnel keys list`.');
};
