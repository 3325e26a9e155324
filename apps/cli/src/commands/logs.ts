// `tunnel logs`: what a running client has said lately, and with -f what it says from now on.
import { Command, Option } from 'commander';
import { addClientFlag, type ClientFlags, chooseClient } from '../agent/choose-client.ts';
import type { LogEntry } from '../agent/log-keeper.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { wholeNumber } from '../flags.ts';
import type { Io } from '../io.ts';
import { CLI_LIMITS } from '../limits.ts';
import { momentText } from '../output/text.ts';
import { oneLine } from '../problem-report.ts';
import { listenForStop } from '../until-stopped.ts';

interface LogFlags extends ClientFlags {
  readonly lines: number;
  readonly follow?: boolean;
  readonly json?: boolean;
}

const EXAMPLES = `
Examples:
  $ tunnel logs -f
  $ tunnel logs -n 1000 --json | jq 'select(.event == "request" and .status >= 500)'`;

export const logsCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addClientFlag(new Command('logs').description('Show the log of a running client'))
    .addOption(
      new Option('-n, --lines <n>', 'How many lines')
        .default(100)
        .argParser(wholeNumber(0, CLI_LIMITS.AGENT_LOG_LINES_MAX)),
    )
    .option('-f, --follow', 'Follow until Ctrl-C')
    .option('--json', 'Print JSON events')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: LogFlags) => {
      const client = await chooseClient(flags, io);
      const path = `/logs?lines=${flags.lines}${flags.follow === true ? '&follow=1' : ''}`;
      const print = (entry: unknown): void => {
        for (const line of linesOf(entry as LogEntry, flags.json === true)) io.stdout.write(`${line}\n`);
      };
      await client.follow({ path, signal: listenForStop(io) }, print);
      finish(EXIT.endedAsAsked);
    });

const linesOf = ({ at, text, event }: LogEntry, json: boolean): string[] => {
  if (json) return event === null ? [] : [JSON.stringify(event)];
  const [first = '', ...more] = text.split('\n').filter((line) => line.trim() !== '');
  return first === '' ? [] : [`${momentText(at)}  ${oneLine(first)}`, ...more.map((line) => `  ${oneLine(line)}`)];
};
