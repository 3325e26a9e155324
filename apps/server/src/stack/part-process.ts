// One run of a part as a process: launched with a channel to us, its lines passed on whole to our output, and how it ended.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { isLogLine, type LineRelay } from '@tunnel/runtime';
import { CRASH_BOUNDS } from '../data-dir/crash-reports.ts';
import type { FromPart, PartName, ToPart } from './messages.ts';

export const PART_PROCESS_BOUNDS = {
  /** A longer line is passed on in pieces: a program that prints without end must not fill our memory. */
  LINE_CHARS: 256 * 1024,
} as const;

/** What lines of all parts go to: those of one part cannot push out another's. */
export interface PartOutput {
  readonly out: LineRelay;
  readonly log: LineRelay;
}

export interface PartLaunch {
  readonly part: PartName;
  /** Shown in the list of processes. */
  readonly dataDir: string;
  readonly output: PartOutput;
  readonly onMessage: (message: FromPart) => void;
}

export interface PartEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The last that it printed and that was no log line. */
  readonly output: string;
}

/** As its supervisor sees it. */
export type PartRun = Pick<PartProcess, 'ended' | 'send' | 'kill'>;

export class PartProcess {
  /** Settles when it has ended and its last line was read; never rejects. */
  readonly ended: Promise<PartEnd>;
  readonly #child: ChildProcess;
  #printed = '';

  /** The same executable, with the command of the part. */
  constructor({ part, dataDir, output, onMessage }: PartLaunch) {
    const [, program = ''] = process.argv;
    const args = [...process.execArgv, program, part, '--supervised', '--data-dir', dataDir];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
    this.#child = child;
    child.on('message', (message) => onMessage(message as FromPart));
    this.ended = new Promise((resolve) => {
      const end = (code: number | null, signal: NodeJS.Signals | null): void =>
        resolve({ code, signal, output: this.#printed });
      // It could not even be launched, or a message did not reach it: 'close' follows only in the second case.
      child.on('error', (error) => {
        this.#keep(`${error.message}\n`);
        if (child.pid === undefined) end(null, null);
      });
      // Not 'exit': by then the last lines have been read.
      child.once('close', end);
    });
    // We read whether or not anybody reads us: a terminal that stands still must not hold up a part.
    if (child.stdout) passLinesOn(child.stdout, (text) => output.out.push(text));
    if (child.stderr) {
      passLinesOn(child.stderr, (text) => {
        for (const line of text.split(/(?<=\n)/)) this.#said(line, output.log);
      });
    }
  }

  send(message: ToPart): void {
    // Whoever is gone is told nothing: its end is noticed elsewhere.
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

/** `onLines` gets one or more whole lines at a time, as they were written together. */
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
  // The part ended in the middle of a read.
  source.on('error', () => {});
};
