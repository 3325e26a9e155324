// `tunnel start [NAME…]`: opens all or the named tunnels of config.yml, and reloads the file on request. `tunnel check`: checks
// config.yml and lists its tunnels without any connection.
import { checkPeerOptions, checkTunnelSpec, localText } from '@tunnel/client';
import { type ClientConfig, type ClientTunnel, loadClientConfig } from '@tunnel/config/client';
import { readConfigText } from '@tunnel/config/layers';
import { Fault } from '@tunnel/errors';
import { sha256Hex } from '@tunnel/runtime';
import { Command } from 'commander';
import { defaultConfigPath, type LoadedConfig, loadConfig } from '../config/file.ts';
import {
  addComfortFlags,
  addConnectionFlags,
  addOpenFlag,
  addRequestFlags,
  type ComfortFlags,
  type ConnectionFlags,
  type RequestFlags,
} from '../config/flags.ts';
import { type NamedTunnel, planTunnels, policyFilesOf } from '../config/plan.ts';
import { resolveSettings, shownPath } from '../config/settings.ts';
import { ConfigWatch, WatchedFiles } from '../config/watch.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import { addPage, type Page } from '../io/help.ts';
import type { Io } from '../io/io.ts';
import { misuse } from '../io/problem-report.ts';
import { counted } from '../output/text.ts';
import type { RunHook, RunningClient, TunnelRun } from '../run/hooks/running-client.ts';
import { type FileContent, Reloader } from '../run/reload.ts';
import { runTunnels } from '../run/run-tunnels.ts';

type StartFlags = ConnectionFlags & RequestFlags & ComfortFlags & { readonly watch?: boolean };

const PAGE: Page = {
  common: ['--watch', '--open', '--json', '--server', '--config'],
  examples: ['tunnel start db cache --config ./tunnel.yml --json', 'tunnel start --watch'],
  note: `SIGHUP and \`tunnel reload\` reload the file. Unchanged tunnels stay open.`,
};

export const startCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addPage(
    addConnectionFlags(
      addComfortFlags(
        addOpenFlag(
          addRequestFlags(
            new Command('start')
              .description('Open the tunnels in config.yml')
              .argument('[name...]', 'Tunnels to open (default: all)')
              .option('--watch', 'Reload when the file changes')
              .option('--new-name', 'Use new random names and ports'),
          ),
        ),
      ),
    ),
    PAGE,
  ).action(async (names: string[], flags: StartFlags) => {
    const config = loadConfig(flags.config, io);
    if (config === null) {
      throw new Fault('CONFIG_FILE_UNREADABLE', { file: defaultConfigPath(io), reason: 'no such file' });
    }
    const chosen = chooseTunnels(config, names, io);
    const settings = resolveSettings(flags, config, io);
    // Two selections of tunnels from one file are two clients. The same selection in another order is the same client.
    const stateKey = `start|${config.path}|${[...names].sort().join(',')}`;
    const from = { config: config.path, source: 'file' as const };
    // Watching begins before policies are read, so that no later change is missed.
    const reloads = reloading(config, names, flags, io);
    const run = { settings, flags, stateKey, ...from, ...planTunnels(chosen, io, flags.wait) };
    finish(await runTunnels({ ...run, ...reloads }, io));
  });

/** Reloads config.yml on request and, with --watch, when a file changes. */
const reloading = (
  config: LoadedConfig,
  names: readonly string[],
  flags: StartFlags,
  io: Io,
): Pick<TunnelRun, 'reload' | 'hooks'> => {
  let running: RunningClient | null = null;
  const watchOf = (file: string): ConfigWatch =>
    new ConfigWatch({
      file,
      clock: io.clock,
      // The outputs report the result of the reload.
      onChange: () => void running?.reload?.().catch(() => {}),
      onTrouble: ({ code, message }) =>
        io.stderr.write(
          `tunnel: cannot watch ${file}: ${code ?? message}\n  Reload the file with \`tunnel reload\`.\n`,
        ),
    });
  const watched = new WatchedFiles(config, watchOf);
  const filesIn = (values: ClientConfig): string[] => policyFilesOf(chosenOf(values, names));
  const watchAsTold = (values: ClientConfig): void => watched.watch(isWatched(values, flags), filesIn(values));
  if (isWatched(config.values, flags)) watched.remember(filesIn(config.values));
  const reloader = new Reloader({
    started: config.values,
    read: () => {
      const text = readConfigText(config.path);
      watched.seen(sha256Hex(text));
      const values = loadClientConfig({ file: config.path, text, env: io.env, home: io.home });
      watched.reads(filesIn(values));
      return contentOf({ path: config.path, text, values }, names, flags.wait ?? false, io);
    },
    onApplied: ({ values }) => watchAsTold(values),
  });
  const hook: RunHook = {
    onRunning: (client) => {
      running = client;
      watchAsTold(config.values);
    },
    close: async () => watched.stop(),
  };
  return { reload: (client) => reloader.reload(client), hooks: [hook] };
};

const isWatched = ({ watch }: ClientConfig, flags: StartFlags): boolean => flags.watch === true || watch;

/**
 * Converts the config file for a reload. Throws for a file that `tunnel start` would reject. Missing tunnels are not an error, not even
 * named tunnels. The file was read once, so the checked text is the applied text.
 */
const contentOf = (
  { path, text, values }: { readonly path: string; readonly text: string; readonly values: ClientConfig },
  names: readonly string[],
  wait: boolean,
  io: Io,
): FileContent => {
  // An editor can truncate the file before it writes the new text.
  if (text.trim() === '') throw misuse(`${path} is empty`);
  const chosen = chosenOf(values, names);
  const { tunnels, peers } = planTunnels(chosen, io, wait);
  for (const spec of tunnels) checkTunnelSpec(spec);
  for (const peer of peers) checkPeerOptions(peer);
  return { entries: [...tunnels, ...peers], values };
};

const chosenOf = ({ tunnels }: ClientConfig, names: readonly string[]): NamedTunnel[] =>
  Object.entries(tunnels).filter(([name]) => names.length === 0 || names.includes(name));

const chooseTunnels = ({ path, values }: LoadedConfig, names: readonly string[], io: Io): NamedTunnel[] => {
  const shown = shownPath(path, io);
  const known = Object.keys(values.tunnels);
  if (known.length === 0) throw misuse(`no tunnels in ${shown}. Add one under \`tunnels:\`.`);
  const chosen = names.length === 0 ? known : [...new Set(names)];
  return chosen.map((name) => {
    const entry = Object.hasOwn(values.tunnels, name) ? values.tunnels[name] : undefined;
    if (entry !== undefined) return [name, entry];
    throw misuse(`no tunnel '${name}' in ${shown}. Available: ${known.join(', ')}.`);
  });
};

export const checkCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  new Command('check')
    .description('Check config.yml for errors')
    .option('--config <file>', 'Config file (default: ~/.tunnel/config.yml)')
    .addHelpText('after', '\nExamples:\n  $ tunnel check --config ./tunnel.yml')
    .action((flags: { config?: string }) => {
      const config = loadConfig(flags.config, io);
      if (config === null) {
        throw new Fault('CONFIG_FILE_UNREADABLE', { file: defaultConfigPath(io), reason: 'no such file' });
      }
      const tunnels = Object.entries(config.values.tunnels);
      const plan = planTunnels(tunnels, io);
      for (const spec of plan.tunnels) checkTunnelSpec(spec);
      for (const peer of plan.peers) checkPeerOptions(peer);
      const lines = tunnels.map(([name, entry]) => `  ${name}: ${checkedText(entry)}`);
      io.stdout.write(
        [`${shownPath(config.path, io)} is valid (${counted(tunnels.length, 'tunnel', 'tunnels')})`, ...lines, ''].join(
          '\n',
        ),
      );
      finish(EXIT.endedAsAsked);
    });

const checkedText = (entry: ClientTunnel): string => {
  const { proto, group, p2p_publish, p2p_connect, p2p_service } = entry;
  if (p2p_connect !== undefined) {
    return `p2p ${p2p_connect} (${p2p_service}) at ${entry.listen_host}:${entry.listen_port}`;
  }
  const local = localText(entry);
  if (p2p_publish !== undefined) return `p2p ${local} (${p2p_service}) as ${p2p_publish}`;
  return `${proto} ${local}${group === undefined ? '' : ` in group ${group}`}`;
};
