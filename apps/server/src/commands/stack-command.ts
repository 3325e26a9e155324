// `tunnel-server stack`: runs the platform, an edge and a database on this machine, and restarts crashed parts.
import { relative } from 'node:path';
import type { ServerConfig } from '@tunnel/config/server';
import type { Command } from 'commander';
import { thisProcess } from '../process/host.ts';
import { type RunDeps, runServer } from '../run/run-server.ts';
import { Stack } from '../stack/stack.ts';
import { keepSettings, keysBesideFile } from './kept-settings.ts';
import { addPublicFlags, type PublicFlags, publicOverrides } from './public-flags.ts';
import { configFileOf, loadConfig, loadStackConfig, type ServerFlags, serverCommand } from './shared.ts';

type StackFlags = ServerFlags & PublicFlags & { readonly verbose?: boolean };

const EXAMPLES = `
Examples:
  $ tunnel-server stack --config server.toml --data-dir /var/lib/tunnel
  $ tunnel-server stack --public tunnels.example.com --acme-email admin@example.com`;

export const stack = (finish: (code: number) => void): Command =>
  addPublicFlags(serverCommand('stack', 'Run edge, platform and database on this machine'))
    .option('--verbose', 'Show all addresses and log lines in a terminal')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: StackFlags) => {
      const host = thisProcess();
      const config = loadStackConfig(flags, host.env, publicOverrides(flags));
      const notes = fileNotes(flags, host.env);
      const make = (deps: RunDeps): Stack => {
        notes.push(...keptNotes(flags, deps.dataDir, host.workingDir));
        return new Stack(config, deps);
      };
      finish(await runServer('stack', config, host, { make, notes, verbose: flags.verbose === true }));
    });

/** Returns a warning if flags contradict the config file. This start uses the flags, but all other commands use the file. */
const fileNotes = (flags: StackFlags, env: NodeJS.ProcessEnv): string[] => {
  const file = configFileOf(flags, env);
  const ofFile = file === undefined ? null : loadedOrNull(() => loadConfig(flags, env));
  const keys = ofFile === null ? [] : keysBesideFile(flags, ofFile);
  return keys.length === 0
    ? []
    : [`warning: ${file} differs from these flags, and other commands use the file: change ${keys.join(', ')} there`];
};

/** Loads the configuration. Returns null if the file is only valid together with the flags. */
const loadedOrNull = (load: () => ServerConfig): ServerConfig | null => {
  try {
    return load();
  } catch {
    return null;
  }
};

/**
 * Saves the settings of `--public` to a file, and returns a note about the file. With `--config`, the operator already has a file, and no
 * file is written.
 */
const keptNotes = (flags: StackFlags, dataDir: string, workingDir: string): string[] => {
  const file = flags.public === undefined || flags.config !== undefined ? null : keepSettings(dataDir, flags);
  if (file === null) return [];
  const short = relative(workingDir, file);
  return [
    `wrote ${short.startsWith('..') ? file : short}: later starts need no flags, and all other commands read this file`,
  ];
};
