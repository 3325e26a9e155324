// `tunnel-server setup`: writes server.toml for a new server, checks DNS records, ports and mail, and prints the next commands.
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { loadServerConfig, SERVER_FILE } from '@tunnel/config/server';
import { Command, Option } from 'commander';
import { EXIT_OK, EXIT_UNEXPECTED } from '../process/problem-report.ts';
import { againLines, type NextFacts, nextLines, verdictLines } from '../setup/checks.rules.ts';
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
  readonly recheck?: boolean;
}

const EXAMPLE = `
Examples:
  $ sudo tunnel-server setup --public tunnel.example.com --email you@example.com \\
      --smtp 'smtp://user:password@mail.example.com:587'
  $ sudo tunnel-server setup --recheck

The exit code is 0 when the file is written, whatever the checks find. With --recheck it is 1 if
a check needs a change.`;

const WRITING = ['public', 'email', 'smtp', 'force', 'checks'];

export const setup = (finish: (code: number) => void): Command =>
  new Command('setup')
    .description('Write server.toml for a new server; check DNS, ports and mail')
    .option(
      '--public <domain>',
      'Serve the internet below this domain (you accept the terms of the certificate authority)',
      hostName,
    )
    .option('--email <address>', 'With --public: contact address for the certificate authority', emailAddress)
    .option('--smtp <url>', "Mail server for invitations: 'smtp://user:password@host:587'")
    .option('--out <file>', `File to write (default: ${SYSTEM_FILE} as root, else server.toml in the data directory)`)
    .option('--force', 'Replace an existing file; a copy of the file is kept')
    .option('--no-checks', 'Skip the checks')
    .addOption(new Option('--recheck', 'Repeat the checks for an existing file, and write nothing').conflicts(WRITING))
    .addHelpText('after', EXAMPLE)
    .action(async (flags: SetupFlags, command: Command) => {
      if (flags.email !== undefined && flags.public === undefined) {
        command.error('error: --email needs --public DOMAIN');
      }
      const { file, dataDir } = placesOf(flags, process.env);
      const facts: NextFacts = { file, isRoot: isRoot(), isDefaultFile: file === SYSTEM_FILE };
      if (flags.recheck === true) return finish((await check(facts)) ? EXIT_OK : EXIT_UNEXPECTED);
      write(flags, file, dataDir);
      if (flags.checks) await check(facts);
      process.stdout.write(`\n${nextLines(facts).join('\n')}\n`);
      return finish(EXIT_OK);
    });

const isRoot = (): boolean => process.getuid?.() === 0;

interface Places {
  readonly file: string;
  readonly dataDir: string;
}

const placesOf = (flags: SetupFlags, env: NodeJS.ProcessEnv): Places => {
  const { data_dir } = loadServerConfig({ env, defaults: isRoot() ? { data_dir: SYSTEM_DATA_DIR } : {} });
  const dataDir = resolve(data_dir);
  return { dataDir, file: resolve(flags.out ?? (isRoot() ? SYSTEM_FILE : join(dataDir, SERVER_FILE))) };
};

/** Prints the checks of a config file. Returns whether nothing needs a change. */
const check = async (facts: NextFacts): Promise<boolean> => {
  const { runChecks } = await import('../setup/run-checks.ts');
  const verdicts = await runChecks(loadConfig({ config: facts.file }, process.env));
  process.stdout.write(`${['', 'Checks:', ...verdictLines(verdicts), ...againLines(verdicts, facts)].join('\n')}\n`);
  return verdicts.every(({ level }) => level !== 'fix');
};

const write = (flags: SetupFlags, file: string, dataDir: string): void => {
  const tables = setupTables(flags, dataDir);
  // A mistake in a flag is reported before a file is replaced.
  loadServerConfig({ env: {}, overrides: tables });
  const head = ['Settings of the Hatchway server. All keys: docs/configuration.md. Restart the server after a change.'];
  const copy = writeSetupFile(file, settingsText(head, tables), {
    force: flags.force === true,
    now: new Date(),
    folderMode: dirname(file) === dataDir ? 0o700 : 0o755,
    owner: isRoot() ? { uid: 0, gid: groupId('tunnel') ?? 0 } : null,
  });
  process.stdout.write(`Wrote ${file}${copy === null ? '' : `, and kept the previous file as ${copy}`}\n`);
};

/** Returns the settings of a new server, the same as of a start with the flags. */
export const setupTables = (flags: Pick<SetupFlags, 'public' | 'email' | 'smtp'>, dataDir: string): Table => {
  const { public: domain, email, smtp } = flags;
  const { platform, ...rest } = settingsOf({
    ...(domain === undefined ? {} : { public: domain }),
    ...(email === undefined ? {} : { acmeEmail: email }),
  });
  const from = `Hatchway <no-reply@${domain ?? 'localhost'}>`;
  return {
    data_dir: dataDir,
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
    const id = Number(line?.split(':')[2] ?? Number.NaN);
    return Number.isSafeInteger(id) ? id : null;
  } catch {
    return null;
  }
};
