// `tunnel-server setup`: writes server.toml for a new server, checks DNS records, ports and mail, and prints the next commands.
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { loadServerConfig, SERVER_FILE } from '@tunnel/config/server';
import { Command, InvalidArgumentError } from 'commander';
import { nextLines, verdictLines } from '../setup/checks.rules.ts';
import { settingsText, type Table } from '../setup/settings-text.rules.ts';
import { SYSTEM_DATA_DIR, SYSTEM_FILE, writeSetupFile } from '../setup/setup-file.ts';
import { settingsOf } from './kept-settings.ts';
import { emailAddress, hostName } from './public-flags.ts';
import { loadConfig } from './shared.ts';

interface SetupFlags {
  readonly public?: string;
  readonly email?: string;
  readonly smtp?: string;
  readonly out?: string;
  readonly force?: boolean;
  readonly checks: boolean;
}

const smtpUrl = (text: string): string => {
  if (/^smtps?:\/\/[^/]/i.test(text) && URL.canParse(text)) return text;
  throw new InvalidArgumentError('Use a URL such as smtp://user:password@mail.example.com:587.');
};

const EXAMPLE = `
Example:
  $ sudo tunnel-server setup --public tunnel.example.com --email you@example.com \\
      --smtp smtp://user:password@mail.example.com:587`;

export const setup = (finish: (code: number) => void): Command =>
  new Command('setup')
    .description('Write server.toml for a new server; check DNS, ports and mail')
    .option(
      '--public <domain>',
      'Serve the internet below this domain (you accept the terms of the certificate authority)',
      hostName,
    )
    .option('--email <address>', 'With --public: contact address for the certificate authority', emailAddress)
    .option('--smtp <url>', 'Mail server for invitations: smtp://user:password@host:587', smtpUrl)
    .option('--out <file>', `File to write (default: ${SYSTEM_FILE} as root, else server.toml in the data directory)`)
    .option('--force', 'Replace an existing file; a copy of the file is kept')
    .option('--no-checks', 'Skip the checks')
    .addHelpText('after', EXAMPLE)
    .action(async (flags: SetupFlags, command: Command) => {
      if (flags.email !== undefined && flags.public === undefined) {
        command.error('error: --email needs --public DOMAIN');
      }
      const file = setUp(flags, process.env);
      if (flags.checks) {
        const { runChecks } = await import('../setup/run-checks.ts');
        const verdicts = await runChecks(loadConfig({ config: file }, process.env));
        process.stdout.write(`${['', 'Checks:', ...verdictLines(verdicts)].join('\n')}\n`);
      }
      const next = nextLines({ file, isRoot: isRoot(), isDefaultFile: file === SYSTEM_FILE });
      process.stdout.write(`\n${next.join('\n')}\n`);
      finish(0);
    });

const isRoot = (): boolean => process.getuid?.() === 0;

/** Writes the config file and returns its path. */
const setUp = (flags: SetupFlags, env: NodeJS.ProcessEnv): string => {
  const { data_dir } = loadServerConfig({ env, defaults: isRoot() ? { data_dir: SYSTEM_DATA_DIR } : {} });
  const file = resolve(flags.out ?? (isRoot() ? SYSTEM_FILE : join(data_dir, SERVER_FILE)));
  const tables = setupTables(flags, dirname(file) === resolve(data_dir) ? null : resolve(data_dir));
  // A mistake in a flag is reported before a file is replaced.
  loadServerConfig({ env: {}, overrides: tables });
  const head = ['Settings of the Hatchway server. All keys: docs/configuration.md. Restart the server after a change.'];
  const options = { force: flags.force === true, now: new Date(), gid: isRoot() ? groupId('tunnel') : null };
  const copy = writeSetupFile(file, settingsText(head, tables), options);
  process.stdout.write(`Wrote ${file}${copy === null ? '' : `, and kept the previous file as ${copy}`}\n`);
  return file;
};

/** Returns the settings of a new server, the same as of a start with the flags. `dataDir` is null for a file in the data directory. */
export const setupTables = (flags: Pick<SetupFlags, 'public' | 'email' | 'smtp'>, dataDir: string | null): Table => {
  const { public: domain, email, smtp } = flags;
  const { platform, ...rest } = settingsOf({
    ...(domain === undefined ? {} : { public: domain }),
    ...(email === undefined ? {} : { acmeEmail: email }),
  });
  const from = `Hatchway <no-reply@${domain ?? 'localhost'}>`;
  return {
    ...(dataDir === null ? {} : { data_dir: dataDir }),
    ...rest,
    platform: {
      ...(platform as Table),
      ...(smtp === undefined ? {} : { mail: { transport: 'smtp', smtp_url: smtp, from } }),
    },
  };
};

/** Returns the id of a group of this machine, or null if there is no such group. */
const groupId = (name: string): number | null => {
  try {
    const line = readFileSync('/etc/group', 'utf8')
      .split('\n')
      .find((one) => one.startsWith(`${name}:`));
    return line === undefined ? null : Number(line.split(':')[2]);
  } catch {
    return null;
  }
};
