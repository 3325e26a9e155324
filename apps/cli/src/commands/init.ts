// `tunnel init`: creates the first config.yml, asks at a terminal for missing values, and checks whether the server accepts the API key.
import { existsSync, readFileSync, renameSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { checkTunnelSpec, parseServerAddress } from '@tunnel/client';
import { pathFrom } from '@tunnel/config/layers';
import { Fault } from '@tunnel/errors';
import { Command, InvalidArgumentError } from 'commander';
import { type EntryKeys, newConfigText } from '../config/entries.ts';
import { defaultConfigPath, loadConfig, tryConfig } from '../config/file.ts';
import { addServerFlags, type ServerFlags } from '../config/flags.ts';
import { readToken, resolveSettings, shownPath } from '../config/settings.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { fileFault, writePrivateFile } from '../io/private-files.ts';
import { misuse, problemLines } from '../io/problem-report.ts';
import { InitQuestions, TUNNEL_WORDS, type TunnelWord, type WantedTunnel } from '../setup/init-questions.ts';
import { tryConnection } from '../setup/try-connection.ts';

interface InitFlags extends ServerFlags {
  readonly tunnel?: readonly WantedTunnel[];
  readonly force?: boolean;
  readonly yes?: boolean;
}

const EXAMPLES = `
Examples:
  $ tunnel init
  $ tunnel init --server edge.example.com:443 --token-file ./key --tunnel web:http:3000 --yes

With an account, use \`tunnel login\` instead. \`tunnel init\` is for a server
address and API key that you already have. In a terminal, it asks for missing
values.`;

const DEFAULT_SERVER = '127.0.0.1:4040';

export const initCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addServerFlags(new Command('init').description('Create config.yml from a server address and API key'))
    .option('--tunnel <name:proto:port>', 'Tunnel to add (repeatable)', oneMore)
    .option('--force', 'Replace config.yml; the old file is kept as config.yml.old')
    .option('--yes', 'Use flags and defaults; ask nothing')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: InitFlags) => {
      const file = flags.config === undefined ? defaultConfigPath(io) : pathFrom(io.cwd, flags.config, io.home);
      if (existsSync(file) && flags.force !== true) {
        throw misuse(
          `${shownPath(file, io)} exists. Edit the file, or replace it with --force (the old file is kept as ${shownPath(file, io)}.old).`,
        );
      }
      const answers = await answersOf(flags, file, io);
      write(file, answers, flags, io);
      io.stdout.write(`Saved ${shownPath(file, io)}.\n`);
      finish(await tryIt(file, answers, io));
    });

const oneMore = (text: string, before: readonly WantedTunnel[] = []): readonly WantedTunnel[] => {
  const [, name = '', proto, port] = /^(.+):([a-z]+):(\d{1,5})$/.exec(text) ?? [];
  if (!TUNNEL_WORDS.includes(proto as TunnelWord)) {
    throw new InvalidArgumentError(`Use NAME:PROTO:PORT, where PROTO is ${TUNNEL_WORDS.join(', ')}.`);
  }
  const tunnel = { name, proto: proto as TunnelWord, port: Number(port) };
  const refusal = refusalOf(tunnel);
  if (refusal !== null) throw new InvalidArgumentError(refusal);
  if (before.some((one) => one.name === name)) throw new InvalidArgumentError(`Two tunnels are named ${name}.`);
  return [...before, tunnel];
};

const refusalOf = ({ name, proto, port }: WantedTunnel): string | null =>
  refusal(() => checkTunnelSpec({ proto, name, local_port: port }));

const serverRefusal = (server: string): string | null => refusal(() => parseServerAddress(server));

const refusal = (check: () => void): string | null => {
  try {
    check();
    return null;
  } catch (error) {
    return `${Fault.from(error).message}.`;
  }
};

// ---- what the file is to say ----

interface Answers {
  readonly server: string;
  /** API key for the config file. Null if no key is written, because the key comes from TUNNEL_API_KEY. */
  readonly key: { readonly file: string } | { readonly text: string } | null;
  readonly tunnels: readonly WantedTunnel[];
}

const answersOf = async (flags: InitFlags, file: string, io: Io): Promise<Answers> => {
  if (flags.token !== undefined && flags.tokenFile !== undefined) {
    throw misuse('use --token or --token-file, not both.');
  }
  if (flags.server !== undefined) parseServerAddress(flags.server);
  const asks = flags.yes !== true;
  if (asks && io.stdin.isTTY !== true) {
    throw misuse('this is not a terminal: add --yes, and flags for the values to set.');
  }
  const questions = asks ? await InitQuestions.open(io) : null;
  const server = flags.server ?? (await questions?.server(DEFAULT_SERVER, serverRefusal)) ?? DEFAULT_SERVER;
  const key = await keyOf(flags, file, questions, io);
  const tunnels = flags.tunnel ?? (await questions?.tunnels(refusalOf)) ?? [];
  return { server, key, tunnels };
};

/** Returns the API key from flags, else from the environment or an existing key file, else from a question. */
const keyOf = async (
  flags: InitFlags,
  file: string,
  questions: InitQuestions | null,
  io: Io,
): Promise<Answers['key']> => {
  if (flags.token !== undefined) return { text: flags.token };
  if (flags.tokenFile !== undefined) {
    const given = pathFrom(io.cwd, flags.tokenFile, io.home);
    // Reads the file before anything is written, so that an unreadable key file is not reported as a rejected key.
    readToken(given, '--token-file');
    return { file: given };
  }
  if ((io.env['TUNNEL_API_KEY'] ?? '') !== '') return null;
  const saved = join(dirname(file), 'key');
  if (existsSync(saved)) return { file: saved };
  if (questions === null) throw new Fault('CLIENT_KEY_MISSING');
  return { text: await questions.key() };
};

const write = (file: string, { server, key, tunnels }: Answers, flags: InitFlags, io: Io): void => {
  const folder = dirname(file);
  const caFile = flags.caFile === undefined ? undefined : inFolder(folder, pathFrom(io.cwd, flags.caFile, io.home));
  const keys: EntryKeys = {
    server,
    tls: flags.tls,
    ca_file: caFile,
    insecure: flags.insecure,
    proxy: flags.proxy,
    auth_token_file: keyFileOf(key, folder),
  };
  const entries = new Map(tunnels.map(({ name, proto, port }) => [name, { proto, local_port: port }]));
  const text = newConfigText(keys, entries);
  if (tryConfig(file, text, io) === null) {
    throw misuse('these settings do not make a valid config.yml. Check the server and the tunnel names.');
  }
  if (key !== null && 'text' in key) writeKey(join(folder, 'key'), key.text);
  if (existsSync(file)) keepOld(file);
  writePrivateFile(file, text);
};

const keyFileOf = (key: Answers['key'], folder: string): string | undefined => {
  if (key === null) return undefined;
  return 'file' in key ? inFolder(folder, key.file) : 'key';
};

/** Writes the key file. A previous key is kept in another file, because no command can show the key again. */
const writeKey = (file: string, key: string): void => {
  if (existsSync(file)) writePrivateFile(`${file}.old`, readFileSync(file, 'utf8'));
  writePrivateFile(file, `${key}\n`);
};

const keepOld = (file: string): void => {
  try {
    renameSync(file, `${file}.old`);
  } catch (error) {
    throw fileFault(file, error);
  }
};

/** Shortens a path for config.yml, which reads paths relative to its folder. Only a path inside the folder is shortened. */
const inFolder = (folder: string, path: string): string => {
  const short = relative(folder, path);
  return short.startsWith('..') ? path : short;
};

// ---- whether it works ----

/** Connects with the new config file. The file stays even if the connection fails. */
const tryIt = async (file: string, { tunnels }: Answers, io: Io): Promise<ExitCode> => {
  const flags: ServerFlags = { config: file };
  const settings = resolveSettings(flags, loadConfig(flags.config, io), io);
  io.stdout.write(`Connecting to ${settings.server}…\n`);
  const tried = await tryConnection(settings, io);
  if (tried.state !== 'accepted') {
    const isLate = tried.state === 'unreachable' && tried.reason !== '';
    io.stderr.write(
      `${(isLate ? [`tunnel: ${tried.reason}`] : problemLines(tried.fault, { platformUrl: io.platformUrl() })).join('\n')}\n`,
    );
    io.stderr.write('  config.yml was saved. Edit it, or run `tunnel init --force`.\n');
    return tried.state === 'refused' ? EXIT.keyRefused : EXIT.notReached;
  }
  const next = tunnels.length > 0 ? 'tunnel start' : 'tunnel http 3000';
  const where = file === defaultConfigPath(io) ? '' : ` --config ${shellWord(file)}`;
  io.stdout.write(`Connected. The API key works.\nNext: ${next}${where}\n`);
  return EXIT.endedAsAsked;
};

/** Quotes a word for a shell, in a command for the user to copy. */
const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
