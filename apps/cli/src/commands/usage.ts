// `tunnel usage`: shows the usage of the signed-in account in total, by day and by tunnel.
import { CHART_DAYS } from '@tunnel/contract';
import { Command, Option } from 'commander';
import { PlatformLogin } from '../api/platform-login.ts';
import { PROXY_FLAG, wholeNumber } from '../config/flags.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { usageLines } from '../output/account.ts';
import { coloursOf } from '../output/text.ts';

interface UsageFlags {
  readonly days: number;
  readonly proxy?: string;
  readonly json?: boolean;
}

const LAST_TUNNELS = 10;

export const usageCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  new Command('usage')
    .description("Show the account's usage")
    .addOption(
      new Option('--days <count>', `Number of days to show, ${CHART_DAYS.min}-${CHART_DAYS.max}`)
        .default(CHART_DAYS.default)
        .argParser(wholeNumber(CHART_DAYS.min, CHART_DAYS.max)),
    )
    .option(...PROXY_FLAG)
    .option('--json', 'Print the usage as JSON')
    .addHelpText('after', '\nExamples:\n  $ tunnel usage --days 7')
    .action(async ({ days, json, ...flags }: UsageFlags) => {
      const [summary, chart, tunnels] = await PlatformLogin.open(io, flags).call((client) =>
        Promise.all([client.usage(), client.usageChart({ days }), client.tunnels({ limit: LAST_TUNNELS })]),
      );
      const usage = { summary, chart, tunnels };
      const isTerminal = io.stdout.isTTY === true;
      const width = isTerminal ? io.stdout.columns || 80 : null;
      const lines = json === true ? [JSON.stringify(usage)] : usageLines(usage, { width, colours: coloursOf(io) });
      io.stdout.write(`${lines.join('\n')}\n`);
      finish(EXIT.endedAsAsked);
    });
