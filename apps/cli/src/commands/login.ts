// `tunnel login`: starts a session at a platform, and keeps it for the commands that ask there.
// `tunnel logout`: ends it at the platform, and forgets it here in any case.
import { dirname } from 'node:path';
import type { ProxyFor } from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import { pathFrom } from '@tunnel/runtime';
import { Command } from 'commander';
import { checkPlatform, DEFAULT_PLATFORM, type PlatformEndpoint, platformClient } from '../api/platform-api.ts';
import { accessUntilFrom, LoginFile, type SavedLogin } from '../api/platform-login.ts';
import { EXIT, type ExitCode, exitCodeOf } from '../exit-codes.ts';
import { PROXY_FLAG } from '../flags.ts';
import type { Io } from '../io.ts';
import { oneLine } from '../problem-report.ts';
import { type LoadedConfig, loadConfig, proxyOfAccount, resolveProxy } from '../settings.ts';
import { withPrompt } from '../terminal-prompt.ts';

interface LoginFlags {
  readonly platform?: string;
  readonly email?: string;
  readonly passwordStdin?: boolean;
  readonly tls: boolean;
  readonly caFile?: string;
  readonly insecure?: boolean;
  readonly proxy?: string;
  readonly config?: string;
}

/** The platform takes up to 1024 bytes. */
const PASSWORD_MAX_BYTES = 4096;

const EXAMPLES = `
Example:
  $ tunnel login --platform https://platform.example.com
  $ tunnel login --email ann@example.com --password-stdin < password.txt

The session is kept in ~/.tunnel/session.json, for its owner's eyes only, until \`tunnel logout\` or for 30 days without use.`;

export const loginCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  new Command('login')
    .description('log in to the platform, for `tunnel keys` and `tunnel usage`')
    .option(
      '--platform <url>',
      `the platform (default: platform_url of config.yml, else that of the last login, else ${DEFAULT_PLATFORM})`,
    )
    .option('--email <address>', 'who logs in; asked for when left out')
    .option('--password-stdin', 'read the password from the standard input')
    .option('--no-tls', 'allow an http:// address on another machine: everything goes in clear, the password too')
    .option('--ca-file <file>', 'PEM file of the authorities to trust')
    .option('--insecure', 'accept any certificate (test servers only)')
    .option(...PROXY_FLAG)
    .option('--config <file>', 'config file (default: ~/.tunnel/config.yml when it is there)')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: LoginFlags) => {
      const file = new LoginFile(io);
      const before = file.read();
      const config = loadConfig(flags.config, io);
      const platform = checkPlatform(choosePlatform(flags, config, before, io));
      const credentials = await readCredentials(flags, platform, before, io);
      const proxyFor = resolveProxy(flags.proxy, config, io);
      const { body, refreshToken } = await platformClient(platform, proxyFor).logIn(credentials);
      if (refreshToken === null) {
        throw new Fault('CLIENT_NOT_A_PLATFORM', { url: platform.url, reason: 'it sets no refresh_token' });
      }
      const { access_token: accessToken, user } = body;
      const accessUntil = accessUntilFrom(io.clock.now());
      await replaceLogin(file, { platform, email: user.email, refreshToken, accessToken, accessUntil }, proxyFor);
      io.stdout.write(`logged in at ${platform.url} as ${oneLine(user.email)}\n`);
      finish(EXIT.endedAsAsked);
    });

/** What was said about the trust in a platform holds for the next login there. */
const choosePlatform = (
  flags: LoginFlags,
  config: LoadedConfig | null,
  before: SavedLogin | null,
  io: Io,
): PlatformEndpoint => {
  const last = before?.platform;
  const url = flags.platform ?? config?.values.platform_url ?? last?.url ?? DEFAULT_PLATFORM;
  const known = last?.url === url.replace(/\/+$/, '') ? last : undefined;
  const fromConfig = config?.values.ca_file;
  const caFile =
    flags.caFile === undefined
      ? (known?.caFile ?? (fromConfig && pathFrom(dirname(config?.path ?? ''), fromConfig, io.home)))
      : pathFrom(io.cwd, flags.caFile, io.home);
  return {
    url,
    clearTextAllowed: !flags.tls || known?.clearTextAllowed === true,
    caFile,
    insecure: flags.insecure ?? known?.insecure ?? false,
  };
};

const readCredentials = async (
  { email, passwordStdin }: LoginFlags,
  { url }: PlatformEndpoint,
  before: SavedLogin | null,
  io: Io,
): Promise<{ email: string; password: string }> => {
  if (passwordStdin === true) {
    if (email === undefined) throw new Fault('CLIENT_USAGE', { reason: '--password-stdin needs --email' });
    return { email, password: await readPassword(io) };
  }
  return withPrompt(io, 'give --email and --password-stdin', async (prompt) => {
    io.stderr.write(`logging in at ${url}\n`);
    const known = before === null ? '' : oneLine(before.email);
    const typed = email ?? (await prompt.ask(known === '' ? 'E-mail: ' : `E-mail [${known}]: `));
    const password = await prompt.askSecret('Password: ');
    return { email: typed.trim() === '' ? known : typed, password };
  });
};

/** A line break at its end is the file's, not the password's. */
const readPassword = async ({ stdin }: Io): Promise<string> => {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of stdin) {
    const buffer = Buffer.from(part);
    bytes += buffer.length;
    if (bytes > PASSWORD_MAX_BYTES) throw new Fault('CLIENT_USAGE', { reason: 'the password on stdin is too long' });
    parts.push(buffer);
  }
  const password = Buffer.concat(parts)
    .toString('utf8')
    .replace(/\r?\n$/, '');
  if (password === '') throw new Fault('CLIENT_USAGE', { reason: 'there is no password on stdin' });
  return password;
};

/** The session before it would live on for a month, and nobody could use it any more. */
const replaceLogin = async (file: LoginFile, login: SavedLogin, proxyFor: ProxyFor): Promise<void> => {
  const before = await file.exclusively(async () => {
    const found = file.read();
    file.write(login);
    return found;
  });
  if (before === null || before.platform.url !== login.platform.url) return;
  // Best effort: the login itself has succeeded.
  await platformClient(login.platform, proxyFor)
    .logOut(before.refreshToken)
    .catch(() => {});
};

export const logoutCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  new Command('logout')
    .description('end the session that `tunnel login` began')
    .option(...PROXY_FLAG)
    .addHelpText('after', '\nExample:\n  $ tunnel logout')
    .action(async (flags: { proxy?: string }) => {
      const file = new LoginFile(io);
      // Also what is no session any more may hold a token.
      const ended = file.exists() ? await file.exclusively(() => endLogin(file, proxyOfAccount(flags, io))) : null;
      if (ended === null) {
        io.stdout.write('not logged in\n');
        return finish(EXIT.endedAsAsked);
      }
      const { login, problem } = ended;
      if (problem === null) {
        io.stdout.write(`logged out at ${login.platform.url}\n`);
        return finish(EXIT.endedAsAsked);
      }
      io.stderr.write(
        `tunnel: logged out here, but the platform was not told: ${oneLine(problem.message)}\n  Its side of the session ends by itself after 30 days without use.\n`,
      );
      finish(exitCodeOf(problem));
    });

interface Ended {
  readonly login: SavedLogin;
  /** Why the platform does not know. */
  readonly problem: Fault | null;
}

const endLogin = async (file: LoginFile, proxyFor: ProxyFor): Promise<Ended | null> => {
  const login = file.read();
  file.remove();
  if (login === null) return null;
  try {
    await platformClient(checkPlatform(login.platform), proxyFor).logOut(login.refreshToken);
    return { login, problem: null };
  } catch (error) {
    return { login, problem: Fault.from(error) };
  }
};
