// Lines that come often (one a request) on their way to stdout: the first at once, those behind it together, a few times a second. A write
// for each would cost the client as much as the request. What is written besides stays in order with them; a reader that is slow costs lines, no memory.
import type { Timer } from '@tunnel/runtime';
import type { Io, TextOutput } from '../io/io.ts';

/** from one write of request lines to the next, where there is no terminal; the first after a pause is written at once */
export const STDOUT_EVERY_MS = 50;
/** Output that waits while stdout is read slowly. Request lines beyond this are left out and counted. */
export const STDOUT_LAG_MAX_BYTES = 1024 * 1024;

interface BatchedLinesOptions {
  /** What stands in the place of so many lines that nobody was there to read, with its line break. */
  readonly droppedText: (lines: number) => string;
}

export class BatchedLines {
  /** In order with the lines: what is written here follows all that came before it, at once. */
  readonly stdout: TextOutput;
  readonly stderr: TextOutput;
  readonly #io: Pick<Io, 'stdout' | 'stderr' | 'clock'>;
  readonly #droppedText: (lines: number) => string;
  #waiting = '';
  /** Bytes that stdout may still be given, as of the last look. */
  #room: number = STDOUT_LAG_MAX_BYTES;
  #dropped = 0;
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(io: Pick<Io, 'stdout' | 'stderr' | 'clock' | 'beforeCrash'>, { droppedText }: BatchedLinesOptions) {
    this.#io = io;
    this.#droppedText = droppedText;
    this.stdout = { write: (text) => this.#inOrder(io.stdout, text) };
    this.stderr = { write: (text) => this.#inOrder(io.stderr, text) };
    io.beforeCrash(() => this.flush());
  }

  /** With its line break. */
  add(line: string): void {
    if (this.#waiting.length + line.length > this.#room) {
      this.#dropped += 1;
      this.#timer ??= this.#later();
      return;
    }
    this.#waiting += line;
    if (this.#isClosed) this.flush();
    else if (this.#timer === null) {
      this.#timer = this.#later();
      this.flush();
    }
  }

  /** Everything that waits, now. */
  flush(): void {
    const { stdout } = this.#io;
    const text = this.#waiting;
    this.#waiting = '';
    if (text !== '') stdout.write(text);
    this.#room = STDOUT_LAG_MAX_BYTES - (stdout.writableLength ?? 0);
    if (this.#dropped > 0 && this.#room > 0) this.#tellDropped();
  }

  /** Nothing waits from here on. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = null;
    this.flush();
    if (this.#dropped > 0) this.#tellDropped();
  }

  #inOrder(output: TextOutput, text: string): unknown {
    this.flush();
    return output.write(text);
  }

  #tellDropped(): void {
    const lines = this.#dropped;
    this.#dropped = 0;
    this.#io.stdout.write(this.#droppedText(lines));
  }

  #later(): Timer {
    return this.#io.clock.setTimeout(() => {
      const isBusy = this.#waiting !== '' || this.#dropped > 0;
      this.#timer = isBusy ? this.#later() : null;
      if (isBusy) this.flush();
    }, STDOUT_EVERY_MS);
  }
}
