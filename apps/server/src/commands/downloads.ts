// `tunnel-server downloads`: the files of the client that the platform hands out at /install and /downloads/. Needs no database and no server.
import type { ServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';
import { fetchRelease, type ListedRelease, listRelease } from '@tunnel/platform';
import { systemClock } from '@tunnel/runtime';
import { Command } from 'commander';
import { VERSION } from '../bundle.ts';
import { sayTo, subcommand } from './database-commands.ts';
import { configFileOf, type JsonFlags, loadConfig, tableText } from './shared.ts';

interface FetchFlags extends JsonFlags {
  readonly from: string;
}

export const downloads = (finish: (code: number) => void): Command => {
  const say = sayTo(finish);
  return new Command('downloads')
    .description('Manage the client files that this server hands out')
    .addCommand(
      subcommand('fetch', 'Fetch the files of a release, and check them', 'downloads fetch --from ./release/out')
        .requiredOption('--from <dir|url>', 'Folder of a release, or https URL of such a folder')
        .action(async (flags: FetchFlags) => {
          const config = loadConfig(flags, process.env);
          const dir = folderOf(config, flags);
          const onProgress = (line: string): void => void process.stderr.write(`${line}\n`);
          const { version, commit, files } = await fetchRelease({
            from: flags.from,
            dir,
            clock: systemClock,
            onProgress,
          });
          if (version !== VERSION) process.stderr.write(`warning: ${versionText(version)}\n`);
          const text = `ok: ${files.length} files of version ${version} in ${dir}; to install the client: ${installUrl(config)}`;
          say(flags, text, { version, commit, dir, files });
        }),
    )
    .addCommand(
      subcommand('list', 'List the files, and check them', 'downloads list').action(async (flags: JsonFlags) => {
        const release = await listRelease(folderOf(loadConfig(flags, process.env), flags));
        say(flags, listText(release), release);
      }),
    );
};

const folderOf = ({ platform }: ServerConfig, flags: JsonFlags): string => {
  if (platform.downloads_dir !== '') return platform.downloads_dir;
  throw new Fault('CONFIG_MISSING_VALUE', {
    where: configFileOf(flags, process.env) ?? 'built-in defaults',
    key: 'platform.downloads_dir',
    expected: 'a folder for the files that the server hands out',
  });
};

const versionText = (version: string): string =>
  `the files have version ${version}, and this tunnel-server has version ${VERSION}; /install offers only files of the server's version`;

const installUrl = ({ platform }: ServerConfig): string => `${platform.public_url.replace(/\/+$/, '')}/install`;

const listText = ({ version, files }: ListedRelease): string =>
  tableText(
    ['FILE', 'VERSION', 'MB', 'STATE', 'SHA256'],
    files.map(({ name, bytes, state, sha256 }) => [name, version, (bytes / 1e6).toFixed(1), state, sha256]),
  );
