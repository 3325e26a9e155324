// A single run of a part as a child process: starts the process with an IPC channel, relays its output as whole lines, and reports how
// the process ended.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { isLogLine, type LineRelay } from '@tunnel/runtime';
import { CRASH_BOUNDS } from '../data-dir/crash-reports.ts';
import type { FromPart, PartName, ToPart } from './messages.ts';

export const PART_PROCESS_BOUNDS = {
  /** Maximum length of a relayed line. Longer lines are split, so that endless output of a part cannot fill the parent's memory. */
  LINE_CHARS: 256 * 1024,
} as const;

/**
 * Output for the lines of a part. Each part has a separate queue, so that a flood of lines from one part cannot displace lines of another
 * part.
 */
export interface PartOutput {
  readonly out: LineRelay;
  readonly log: LineRelay;
}

export interface PartLaunch {
  readonly part: PartName;
  /** Data directory, passed on the command line so that the process list shows the directory. */
  readonly dataDir: string;
  readonly output: PartOutput;
  readonly onMessage: (message: FromPart) => void;
}

export interface PartEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Last output of the part other than log lines. */
  readonly output: string;
}

/** A run of a part as seen by its supervisor. */
export type PartRun = Pick<PartProcess, 'ended' | 'send' | 'kill'>;

export class PartProcess {
  /** Resolves when the process has ended and its last line has been read. Never rejects. */
  readonly ended: Promise<PartEnd>;
  readonly #child: ChildProcess;
  #printed = '';

  /** Starts the same executable with the command of the part. */
  constructor({ part, dataDir, output, onMessage }: PartLaunch) {
    const [, program = ''] = process.argv;
    const args = [...process.execArgv, program, part, '--supervised', '--data-dir', dataDir];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
    this.#child = child;
    child.on('message', (message) => onMessage(message as FromPart));
    this.ended = new Promise((resolve) => {
      const end = (code: number | null, signal: NodeJS.Signals | null): void =>
        resolve({ code, signal, output: this.#printed });
      // The process could not be started, or a message could not be sent. Only in the second case, a 'close' event follows.
      child.on('error', (error) => {
        this.#keep(`${error.message}\n`);
        if (child.pid === undefined) end(null, null);
      });
      // Waits for 'close' instead of 'exit', because on 'close' all output has been read.
      child.once('close', end);
    });
    // The output is always read, even if our own output is blocked, so that a stalled terminal cannot block a part.
    if (child.stdout) passLinesOn(child.stdout, (text) => output.out.push(text));
    if (child.stderr) {
      passLinesOn(child.stderr, (text) => {
        for (const line of text.split(/(?<=\n)/)) this.#said(line, output.log);
      });
    }
  }

  send(message: ToPart): void {
    // Send errors are ignored: the process has ended, and its end is noticed elsewhere.
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  #said(line: string, log: LineRelay): void {
    log.push(line);
    if (!isLogLine(line)) this.#keep(line);
  }

  #keep(text: string): void {
    this.#printed = (this.#printed + text).slice(-CRASH_BOUNDS.TEXT_CHARS);
  }
}

/** Reads a stream as lines. `onLines` receives one or more whole lines at a time, in the same chunks as written. */
const passLinesOn = (source: Readable, onLines: (text: string) => void): void => {
  let rest = '';
  source.setEncoding('utf8');
  source.on('data', (piece: string) => {
    rest += piece;
    const end = rest.lastIndexOf('\n') + 1;
    if (end > 0) onLines(rest.slice(0, end));
    rest = rest.slice(end);
    if (rest.length < PART_PROCESS_BOUNDS.LINE_CHARS) return;
    onLines(`${rest}\n`);
    rest = '';
  });
  source.on('end', () => {
    if (rest !== '') onLines(`${rest}\n`);
  });
  // A read fails if the part ends during the read. The error is ignored, because the end of the part is noticed elsewhere.
  source.on('error', () => {});
};
