// `tunnel login`: starts a session at a platform, saves the session for other commands, and sets up this computer for tunnels. `tunnel
// logout`: ends the session at the platform, and always removes the session from this computer.
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { ProxyFor } from '@tunnel/client';
import { pathFrom } from '@tunnel/config/layers';
import { Fault } from '@tunnel/errors';
import { Command } from 'commander';
import { LoginFile, type SavedLogin } from '../api/login-file.ts';
import { checkPlatform, DEFAULT_PLATFORM, type PlatformEndpoint, platformClient } from '../api/platform-api.ts';
import { accessUntilFrom, PlatformLogin } from '../api/platform-login.ts';
import { configPath, type LoadedConfig, loadConfig } from '../config/file.ts';
import { FLAG_GROUPS, PROXY_FLAG } from '../config/flags.ts';
import { proxyOfAccount, resolveProxy } from '../config/settings.ts';
import { EXIT, type ExitCode, exitCodeOf } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { misuse, oneLine } from '../io/problem-report.ts';
import { withPrompt } from '../io/terminal-prompt.ts';
import { forgetKey } from '../setup/key-store.ts';
import { type SetupFlags, savedKeyId, setUpComputer } from '../setup/login-setup.ts';

interface LoginFlags extends SetupFlags {
  readonly platform?: string;
  readonly email?: string;
  readonly passwordStdin?: boolean;
  readonly key: boolean;
}

/** Maximum attempts to type the password before the command ends. */
const PASSWORD_TRIES = 3;

/** Maximum size of a password on stdin. The platform accepts up to 1024 bytes. */
const PASSWORD_MAX_BYTES = 4096;

const EXAMPLES = `
Examples:
  $ tunnel login
  $ tunnel login --platform https://tunnels.example.com
  $ tunnel login --email ann@example.com --password-stdin < password.txt

Signing in also creates an API key (~/.tunnel/key) and sets the server in
config.yml, unless this computer already has them. The session lasts until
\`tunnel logout\` or 30 days without use.`;

export const loginCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  new Command('login')
    .description('Sign in and set up this computer')
    .option('--platform <url>', `Platform URL (default: from config.yml, the last sign-in, or ${DEFAULT_PLATFORM})`)
    .option('--email <address>', 'Email of your account (default: ask)')
    .option('--password-stdin', 'Read the password from standard input')
    .optionsGroup('This computer:')
    .option('--region <id>', 'Region to use (default: ask if there are several)')
    .option('--no-key', 'Only sign in; do not change the API key or config.yml')
    .option('--replace', 'Switch config.yml from another account to this one')
    .option('--config <file>', 'Config file to read and update (default: ~/.tunnel/config.yml)')
    .optionsGroup(FLAG_GROUPS.connection)
    .option(...PROXY_FLAG)
    .option('--no-tls', 'Allow http:// to other hosts; the password is sent unencrypted')
    .option('--ca-file <file>', 'Trust the CA certificates in this PEM file')
    .option('--insecure', 'Accept any certificate (test servers only)')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: LoginFlags) => {
      const email = await logIn(flags, io);
      const login = PlatformLogin.open(io, flags);
      io.stdout.write(`Signed in to ${login.platformUrl} as ${oneLine(email)}.\n`);
      if (flags.key) {
        await setUpComputer(login, flags, io);
        io.stdout.write(`Next: tunnel http 3000${flags.config === undefined ? '' : ` --config ${flags.config}`}\n`);
      }
      finish(EXIT.endedAsAsked);
    });

/** Signs in and saves the session. Resolves with the email address of the account. */
const logIn = async (flags: LoginFlags, io: Io): Promise<string> => {
  const file = new LoginFile(io);
  const before = file.read();
  // If this command saves an API key, it may create the config file given by --config.
  const isNew = flags.key && flags.config !== undefined && !existsSync(configPath(flags.config, io));
  const config = isNew ? null : loadConfig(flags.config, io);
  const platform = checkPlatform(choosePlatform(flags, config, before, io));
  // Takes the lock of the session file before signing in: if the file cannot be written, no session must be started, because no command
  // could end the session.
  await file.exclusively(async () => {});
  const proxyFor = resolveProxy(flags.proxy, config, io);
  const client = platformClient(platform, proxyFor);
  const { body, refreshToken } = await signIn((credentials) => client.logIn(credentials), flags, {
    url: platform.url,
    before,
    io,
  });
  if (refreshToken === null) {
    throw new Fault('CLIENT_NOT_A_PLATFORM', { url: platform.url, reason: 'no refresh_token cookie in the response' });
  }
  const { access_token: accessToken, user } = body;
  const accessUntil = accessUntilFrom(io.clock.now());
  await replaceLogin(file, { platform, email: user.email, refreshToken, accessToken, accessUntil }, proxyFor);
  return user.email;
};

/** Returns the platform to sign in to. TLS settings and permissions from the last sign-in to the same platform still apply. */
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

interface Asked {
  readonly url: string;
  readonly before: SavedLogin | null;
  readonly io: Io;
}

interface TypedCredentials {
  readonly email: string;
  readonly password: string;
}

const INSTEAD = 'Add --email and --password-stdin.';

/**
 * Signs in with the flags, and asks at the terminal for missing values. After a wrong password, asks for the password again. The prompt
 * is closed during a call, so that Ctrl-C ends the call.
 */
const signIn = async <T>(
  logInWith: (credentials: TypedCredentials) => Promise<T>,
  { email: given, passwordStdin }: LoginFlags,
  { url, before, io }: Asked,
): Promise<T> => {
  if (passwordStdin === true) {
    if (given === undefined) throw misuse('--password-stdin needs --email.');
    return logInWith({ email: given, password: await readPassword(io) });
  }
  let typed = await withPrompt(io, INSTEAD, async (prompt) => {
    io.stderr.write(`Sign in to ${oneLine(url)}\n`);
    const known = before === null ? '' : oneLine(before.email);
    const answer = given ?? (await prompt.ask(known === '' ? 'Email: ' : `Email [${known}]: `));
    return { email: answer.trim() === '' ? known : answer, password: await prompt.askSecret('Password: ') };
  });
  for (let left = PASSWORD_TRIES - 1; ; left -= 1) {
    try {
      return await logInWith(typed);
    } catch (error) {
      if (left === 0 || Fault.from(error).code !== 'LOGIN_WRONG') throw error;
    }
    io.stderr.write('Incorrect email or password. Try again.\n');
    const password = await withPrompt(io, INSTEAD, (prompt) => prompt.askSecret('Password: '));
    typed = { ...typed, password };
  }
};

/** Reads the password from stdin. A line break at the end belongs to the file, not to the password. */
const readPassword = async ({ stdin }: Io): Promise<string> => {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of stdin) {
    const buffer = Buffer.from(part);
    bytes += buffer.length;
    if (bytes > PASSWORD_MAX_BYTES) throw misuse('the password on standard input is too long.');
    parts.push(buffer);
  }
  const password = Buffer.concat(parts)
    .toString('utf8')
    .replace(/\r?\n$/, '');
  if (password === '') throw misuse('no password on standard input.');
  return password;
};

/**
 * Saves the new session and ends the previous session at the same platform, which would otherwise stay valid for a month without any use.
 */
const replaceLogin = async (file: LoginFile, login: SavedLogin, proxyFor: ProxyFor): Promise<void> => {
  const before = await file.exclusively(async () => {
    const found = file.read();
    file.write(login);
    return found;
  });
  if (before === null || before.platform.url !== login.platform.url) return;
  // Best effort, because the sign-in itself has succeeded.
  await platformClient(login.platform, proxyFor)
    .logOut(before.refreshToken)
    .catch(() => {});
};

interface LogoutFlags {
  readonly revokeKey?: boolean;
  readonly proxy?: string;
  readonly config?: string;
}

export const logoutCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  new Command('logout')
    .description('Sign out (tunnels and the API key keep working)')
    .option('--revoke-key', "Also revoke this computer's API key; its tunnels close within 2 seconds")
    .option(...PROXY_FLAG)
    .option('--config <file>', 'Config file with the API key (default: ~/.tunnel/config.yml)')
    .addHelpText('after', '\nExamples:\n  $ tunnel logout\n  $ tunnel logout --revoke-key')
    .action(async (flags: LogoutFlags) => {
      // The API key is revoked first, while there is a session for the call. After a failure the user is still signed in, and can try
      // again.
      if (flags.revokeKey === true) await endSavedKey(flags, io);
      const file = new LoginFile(io);
      // A file without a valid session can still contain a token, so the file is removed in any case.
      const ended = file.exists() ? await file.exclusively(() => endLogin(file, proxyOfAccount(flags, io))) : null;
      if (ended === null) {
        io.stdout.write('Not signed in.\n');
        return finish(EXIT.endedAsAsked);
      }
      const { login, problem } = ended;
      if (problem === null) {
        io.stdout.write(`Signed out of ${login.platform.url}.\n`);
        return finish(EXIT.endedAsAsked);
      }
      io.stderr.write(
        `tunnel: signed out on this computer, but the platform could not be reached: ${oneLine(problem.message)}\n  The session on the platform expires after 30 days without use.\n`,
      );
      finish(exitCodeOf(problem));
    });

const endSavedKey = async (flags: LogoutFlags, io: Io): Promise<void> => {
  const login = PlatformLogin.open(io, flags);
  const id = await savedKeyId(login, flags.config, io);
  await login.call((client) => client.revokeKey(id));
  forgetKey(flags.config, io);
  io.stdout.write('API key revoked.\n');
};

interface Ended {
  readonly login: SavedLogin;
  /** Reason why the session could not be ended at the platform. Null on success. */
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
