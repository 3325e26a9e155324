// `tunnel logs`: prints the recent log of a running client, and with -f also new entries.
import { edgeAnswerText } from '@tunnel/client';
import { Command, Option } from 'commander';
import type { LogEntry } from '../agent/answers.ts';
import { addClientFlag, type ClientFlags, chooseClient } from '../agent/choose-client.ts';
import { wholeNumber } from '../config/flags.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { oneLine } from '../io/problem-report.ts';
import { listenForStop } from '../io/until-stopped.ts';
import { CLI_LIMITS } from '../limits.ts';
import type { JsonEvent } from '../output/json.ts';
import { durationText, factsLine, type LineFacts, nameWidthOf } from '../output/lines.ts';
import { momentText } from '../output/text.ts';

interface LogFlags extends ClientFlags {
  readonly lines: number;
  readonly follow?: boolean;
  readonly json?: boolean;
}

const EXAMPLES = `
Request times marked \`local\` measure your service only. For the total time at
the edge, see \`tunnel requests\`.

Examples:
  $ tunnel logs -f
  $ tunnel logs -n 1000 --json | jq 'select(.event == "request" and .status >= 500)'`;

export const logsCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addClientFlag(new Command('logs').description('Show the log of a running client'))
    .addOption(
      new Option('-n, --lines <n>', 'Number of lines to show')
        .default(100)
        .argParser(wholeNumber(0, CLI_LIMITS.AGENT_LOG_LINES_MAX)),
    )
    .option('-f, --follow', 'Keep printing new lines until Ctrl-C')
    .option('--json', 'Print events as JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: LogFlags) => {
      const client = await chooseClient(flags, io);
      const path = `/logs?lines=${flags.lines}${flags.follow === true ? '&follow=1' : ''}`;
      const log = new LogLines(io);
      const print = (entry: unknown): void => {
        const lines = flags.json === true ? jsonLines(entry as LogEntry) : log.lines(entry as LogEntry);
        for (const line of lines) io.stdout.write(`${line}\n`);
      };
      await client.follow({ path, signal: listenForStop(io) }, print);
      finish(EXIT.endedAsAsked);
    });

const jsonLines = ({ event }: LogEntry): string[] => (event === null ? [] : [JSON.stringify(event)]);

/** Minimum columns of tunnel names. Most names fit, so that the lines of requests are aligned from the first line on. */
const NAME_LEAST = 12;

/** Formats a client's log entries with their time. Requests are aligned in columns, even with tunnel names of different lengths. */
class LogLines {
  readonly #io: Pick<Io, 'stdout' | 'clock'>;
  #nameWidth = NAME_LEAST;

  constructor(io: Pick<Io, 'stdout' | 'clock'>) {
    this.#io = io;
  }

  lines({ at, text, event }: LogEntry): string[] {
    const moment = this.#momentText(at);
    const facts = event === null ? null : loggedRequest(event);
    if (facts !== null) return [`${moment}  ${this.#requestLine(facts, moment.length + 2)}`];
    const [first, ...more] = text.split('\n').filter((line) => line.trim() !== '');
    return first === undefined ? [] : [`${moment}  ${oneLine(first)}`, ...more.map((line) => `  ${oneLine(line)}`)];
  }

  /** Formats the time of a log entry. On a terminal, entries of today show only the time. */
  #momentText(at: string): string {
    const moment = momentText(at);
    const [today = ''] = momentText(new Date(this.#io.clock.now()).toISOString()).split(' ');
    return this.#io.stdout.isTTY === true && moment.startsWith(`${today} `) ? moment.slice(today.length + 1) : moment;
  }

  #requestLine(facts: LineFacts, taken: number): string {
    this.#nameWidth = Math.max(this.#nameWidth, nameWidthOf([facts.name]));
    const { isTTY, columns } = this.#io.stdout;
    const width = isTTY === true ? (columns || 80) - 1 - taken : Infinity;
    return factsLine(facts, { width, named: true, nameWidth: this.#nameWidth, untimed: true });
  }
}

/** Columns of a duration such as `999 ms local`. */
const LOCAL_WIDTH = 14;

/**
 * Returns the request of a log event, or null if the event is not about a request. The duration is marked as `local`, because `tunnel
 * requests` shows the total duration at the edge.
 */
const loggedRequest = (event: JsonEvent): LineFacts | null => {
  if (event.event !== 'request' && event.event !== 'edge_answered') return null;
  const aborted = event['aborted'] === true;
  const code = textOrNull(event['code']);
  const rule = textOrNull(event['rule']);
  const local = `${durationText(Number(event['duration_ms']))} local`.padStart(LOCAL_WIDTH);
  return {
    name: String(event['name']),
    at: Date.parse(event.at),
    aborted,
    method: String(event['method']),
    path: String(event['path']),
    status: typeof event['status'] === 'number' ? event['status'] : null,
    outcome: event.event === 'request' ? local : oneLine(edgeAnswerText({ code, rule })),
    tail: `${aborted ? ' aborted' : ''}${textOrNull(event['replay_of']) === null ? '' : ' replay'}`,
  };
};

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null);
