// `tunnel service`: keeps `tunnel start` running as a systemd service of this user or of the system.
import { Fault } from '@tunnel/errors';
import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { wholeNumber } from '../config/flags.ts';
import { type ExitCode, exitCodeOf } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { problemLines } from '../io/problem-report.ts';
import type { ServiceAction, ServiceFlags } from '../service/service.ts';

const ACTIONS: readonly ServiceAction[] = ['install', 'uninstall', 'start', 'stop', 'status', 'logs'];

const EXAMPLES = `
Examples:
  $ tunnel service install --config ~/.tunnel/config.yml
  $ sudo tunnel service install --system --name web --config /etc/tunnel/web.yml
  $ tunnel service install --print > tunnel.service`;

export const serviceCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  new Command('service')
    .description('Run `tunnel start` as a systemd service')
    .addArgument(new Argument('<action>', 'Action').choices(ACTIONS))
    .option('--system', 'Use a system service, as root (default: a user service)')
    .option('--name <name>', 'Name the unit tunnel-<name>.service, to run several', serviceName)
    .option('--config <file>', 'Config file (default: ~/.tunnel/config.yml)')
    .option('--print', 'Print the unit file without installing')
    .addOption(
      new Option('-n, --lines <count>', 'logs: Number of lines to show')
        .default(100)
        .argParser(wholeNumber(0, 1_000_000)),
    )
    .option('-f, --follow', 'logs: Keep printing new lines until Ctrl-C')
    .addHelpText('after', EXAMPLES)
    .action(async (action: ServiceAction, flags: ServiceFlags) => {
      const { runService } = await import('../service/service.ts');
      try {
        finish(await runService(action, flags, io));
      } catch (error) {
        if (!(error instanceof Fault) || error.code !== 'CLIENT_SERVICE') throw error;
        io.stderr.write(
          `${problemLines(error)
            .map((line) => line.trim())
            .join('. ')}\n`,
        );
        finish(exitCodeOf(error));
      }
    });

const serviceName = (text: string): string => {
  if (/^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/.test(text)) return text;
  throw new InvalidArgumentError('Use letters, digits, dots, hyphens and underscores.');
};
