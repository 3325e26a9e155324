// `tunnel login`: starts a session at a platform, and keeps it for the commands that ask there.
import { dirname } from 'node:path';
import { Fault } from '@tunnel/errors';
import { pathFrom } from '@tunnel/runtime';
import { Command } from 'commander';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import type { Io } from '../io.ts';
import { checkPlace, DEFAULT_PLATFORM, type PlatformPlace, platformClient } from '../platform/platform-address.ts';
import { accessUntilFrom } from '../platform/platform-session.ts';
import { type SavedSession, SessionFile } from '../platform/session-file.ts';
import { oneLine } from '../problem-report.ts';
import { type LoadedConfig, loadConfig } from '../settings.ts';
import { withPrompt } from '../terminal-prompt.ts';

interface LoginFlags {
  readonly platform?: string;
  readonly email?: string;
  readonly passwordStdin?: boolean;
  readonly tls: boolean;
  readonly caFile?: string;
  readonly insecure?: boolean;
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
    .option('--config <file>', 'config file (default: ~/.tunnel/config.yml when it is there)')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: LoginFlags) => {
      const file = new SessionFile(io);
      const before = file.read();
      const place = checkPlace(choosePlace(flags, loadConfig(flags.config, io), before, io));
      const credentials = await readCredentials(flags, place, before, io);
      const { body, refreshToken } = await platformClient(place).logIn(credentials);
      if (refreshToken === null) {
        throw new Fault('CLIENT_NOT_A_PLATFORM', { url: place.url, reason: 'it sets no refresh_token' });
      }
      const { access_token: accessToken, user } = body;
      const accessUntil = accessUntilFrom(io.clock.now());
      await replaceSession(file, { place, email: user.email, refreshToken, accessToken, accessUntil });
      io.stdout.write(`logged in at ${place.url} as ${oneLine(user.email)}\n`);
      finish(EXIT.endedAsAsked);
    });

/** What was said about the trust in a platform holds for the next login there. */
const choosePlace = (
  flags: LoginFlags,
  config: LoadedConfig | null,
  before: SavedSession | null,
  io: Io,
): PlatformPlace => {
  const last = before?.place;
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
  { url }: PlatformPlace,
  before: SavedSession | null,
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
const replaceSession = async (file: SessionFile, session: SavedSession): Promise<void> => {
  const before = await file.exclusively(async () => {
    const found = file.read();
    file.write(session);
    return found;
  });
  if (before === null || before.place.url !== session.place.url) return;
  // Best effort: the login itself has succeeded.
  await platformClient(session.place)
    .logOut(before.refreshToken)
    .catch(() => {});
};
