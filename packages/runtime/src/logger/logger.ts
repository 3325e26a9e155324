// The logger: pino for levels and JSON, with masking before it and a bounded output behind it.
import pino from 'pino';
import { LineSink, sharedOutlet } from './line-sink.ts';
import { maskFields, maskText } from './mask.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** Returns a logger that adds fields to every line. */
  child(fields: object): Logger;
  /** Number of log lines not written because the output is closed or stalled. */
  readonly droppedLines: number;
  /** Resolves when every line is written, or after a short time if the output is stalled, so that it never delays an exit. */
  flush(): Promise<void>;
}

export interface LoggerOptions {
  readonly level?: LogLevel;
  /** Output of the logger. Default: process.stdout. */
  readonly stream?: NodeJS.WritableStream;
  readonly format: 'json' | 'human';
  /** Colors of the human-readable format. Default: on for a terminal without NO_COLOR. */
  readonly colour?: boolean;
  readonly now?: () => number;
}

export const createLogger = (options: LoggerOptions): Logger => {
  const stream = options.stream ?? process.stdout;
  const now = options.now ?? Date.now;
  const colour = options.colour ?? wantsColour(stream);
  const sink = new LineSink(sharedOutlet(stream), {
    droppedNotice: (count) => dropped(count, now(), options.format === 'human', colour),
  });
  const write = (line: string): void => sink.push(options.format === 'json' ? line : formatForPeople(line, colour));
  const root = pino(
    {
      level: options.level ?? 'info',
      base: null,
      timestamp: () => `,"time":"${new Date(now()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write },
  );
  return new MaskingLogger(root, sink);
};

/** Writes complete log lines of another process, within the same limits as own lines. */
export interface LineRelay {
  /** `line` includes its line end. A line of our logger is converted to the wanted format, any other text is kept. */
  push(line: string): void;
  flush(): Promise<void>;
}

export const createLineRelay = (options: Pick<LoggerOptions, 'stream' | 'format' | 'colour'>): LineRelay => {
  const stream = options.stream ?? process.stdout;
  const colour = options.colour ?? wantsColour(stream);
  const isHuman = options.format === 'human';
  const sink = new LineSink(sharedOutlet(stream), {
    droppedNotice: (count) => dropped(count, Date.now(), isHuman, colour),
  });
  return {
    push: (line) => sink.push(isHuman ? shownToPeople(line, colour) : line),
    flush: () => sink.flush(),
  };
};

/** Keeps text that only looks like a log line, because the process may have been killed while writing. */
const shownToPeople = (line: string, colour: boolean): string => {
  if (!isLogLine(line)) return line;
  try {
    return formatForPeople(line, colour);
  } catch {
    return line;
  }
};

/** Matches log lines written by pino, where the level comes first. */
const LOG_LINE = /^\{"level":"\w+",.*\}\n$/;

export const isLogLine = (line: string): boolean => LOG_LINE.test(line);

/** Returns true for a log line of level info or debug. */
export const isDetailLine = (line: string): boolean => /^\{"level":"(?:info|debug)",/.test(line) && isLogLine(line);

class MaskingLogger implements Logger {
  readonly #pino: pino.Logger;
  readonly #sink: LineSink;

  constructor(inner: pino.Logger, sink: LineSink) {
    this.#pino = inner;
    this.#sink = sink;
  }

  get droppedLines(): number {
    return this.#sink.droppedLines;
  }

  debug(fields: object, message: string): void {
    this.#log('debug', fields, message);
  }

  info(fields: object, message: string): void {
    this.#log('info', fields, message);
  }

  warn(fields: object, message: string): void {
    this.#log('warn', fields, message);
  }

  error(fields: object, message: string): void {
    this.#log('error', fields, message);
  }

  child(fields: object): Logger {
    return new MaskingLogger(this.#pino.child(maskFields(fields)), this.#sink);
  }

  flush(): Promise<void> {
    return this.#sink.flush();
  }

  #log(level: 'debug' | 'info' | 'warn' | 'error', fields: object, message: string): void {
    // Lines below the log level are skipped first, because masking secrets copies the fields.
    if (!this.#pino.isLevelEnabled(level)) return;
    this.#pino[level](maskFields(fields), maskText(message));
  }
}

const wantsColour = (stream: NodeJS.WritableStream): boolean =>
  (stream as { isTTY?: boolean }).isTTY === true && (process.env['NO_COLOR'] ?? '') === '';

const dropped = (count: number, at: number, human: boolean, colour: boolean): string => {
  const line = `${JSON.stringify({
    level: 'warn',
    time: new Date(at).toISOString(),
    dropped_lines: count,
    msg: `${count} log lines dropped because the output was not read fast enough`,
  })}\n`;
  return human ? formatForPeople(line, colour) : line;
};

// Converts a JSON line to a short line for people: time, level, message, fields.

interface Entry {
  readonly level: string;
  readonly time: string;
  readonly msg: string;
}

const COLOURS: Record<string, string> = { debug: '90', info: '36', warn: '33', error: '31' };
const NOT_FIELDS = new Set(['level', 'time', 'msg']);

export const formatForPeople = (jsonLine: string, colour: boolean): string => {
  const entry = JSON.parse(jsonLine) as Entry;
  const level = String(entry.level);
  const paint = (code: string, text: string): string => (colour ? `\u001b[${code}m${text}\u001b[0m` : text);
  const fields = Object.entries(entry)
    .filter(([name]) => !NOT_FIELDS.has(name))
    .map(([name, value]) => `${oneLine(name)}=${fieldText(value)}`)
    .join(' ');
  const time = String(entry.time).slice(11, 19);
  const head = `${paint('90', time)} ${paint(COLOURS[level] ?? '0', level.toUpperCase().padEnd(5))} ${oneLine(String(entry.msg))}`;
  return `${fields === '' ? head : `${head} ${paint('90', fields)}`}\n`;
};

const fieldText = (value: unknown): string => {
  if (typeof value === 'string') return /^[^\s"=\p{Cc}\p{Cf}]+$/u.test(value) ? value : oneLine(JSON.stringify(value));
  // Shows only the message of an error, because its stack has many lines.
  if (isError(value)) return oneLine(JSON.stringify(value.message));
  return oneLine(JSON.stringify(value) ?? 'undefined');
};

const isError = (value: unknown): value is { message: string } =>
  typeof value === 'object' &&
  value !== null &&
  'stack' in value &&
  'message' in value &&
  typeof value.message === 'string';

/** Characters that change the text direction, and line and paragraph separators. */
const TURNING = /[\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Line breaks and escape sequences in data must not forge lines or control a terminal. */
const oneLine = (text: string): string =>
  text
    .replace(/\p{Cc}/gu, (character) => JSON.stringify(character).slice(1, -1))
    .replace(/[\u007f-\u009f]/g, '?')
    .replace(TURNING, '?');
