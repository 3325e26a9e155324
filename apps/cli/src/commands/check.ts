// `tunnel check`: reads config.yml, says what it would open, connects to nothing.
import { Fault } from '@tunnel/errors';
import { Command } from 'commander';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import type { Io } from '../io.ts';
import { defaultConfigPath, loadConfig } from '../settings.ts';

export const checkCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  new Command('check')
    .description('check config.yml without connecting')
    .option('--config <file>', 'config file (default: ~/.tunnel/config.yml)')
    .addHelpText('after', '\nExample:\n  $ tunnel check --config ./tunnel.yml')
    .action((flags: { config?: string }) => {
      const config = loadConfig(flags.config, io);
      if (config === null) {
        throw new Fault('CONFIG_FILE_UNREADABLE', { file: defaultConfigPath(io), reason: 'no such file' });
      }
      const tunnels = Object.entries(config.values.tunnels);
      const lines = tunnels.map(([name, { proto, local_host, local_port, group }]) => {
        const place = `${proto} ${local_host}:${local_port}`;
        return `  ${name}: ${place}${group === undefined ? '' : ` in group ${group}`}`;
      });
      io.stdout.write([`${config.path} is good: ${tunnels.length} tunnels`, ...lines, ''].join('\n'));
      finish(EXIT.endedAsAsked);
    });
