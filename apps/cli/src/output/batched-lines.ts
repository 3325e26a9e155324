// Frequent lines, such as one per request, on their way to stdout: the first line is written immediately, the following lines in batches,
// a few times a second. A write for each line would cost the client as much as the request. Other output keeps its order with the lines.
// A slow reader loses lines, but costs no memory.
import type { Timer } from '@tunnel/runtime';
import type { Io, TextOutput } from '../io/io.ts';

/** Interval between writes of request lines without a terminal. The first line after a pause is written immediately. */
export const STDOUT_EVERY_MS = 50;
/** Maximum output queued while stdout is read slowly. Further request lines are left out and counted. */
export const STDOUT_LAG_MAX_BYTES = 1024 * 1024;

interface BatchedLinesOptions {
  /** Returns the text printed in place of the given number of dropped lines, with its line break. */
  readonly droppedText: (lines: number) => string;
}

export class BatchedLines {
  /** stdout in order with the queued lines: a write flushes the queue first, and is not delayed. */
  readonly stdout: TextOutput;
  readonly stderr: TextOutput;
  readonly #io: Pick<Io, 'stdout' | 'stderr' | 'clock'>;
  readonly #droppedText: (lines: number) => string;
  #waiting = '';
  /** Bytes that can still be queued for stdout, as of the last check. */
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

  /** Adds a line. `line` includes its line break. */
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

  /** Writes all queued lines immediately. */
  flush(): void {
    const { stdout } = this.#io;
    const text = this.#waiting;
    this.#waiting = '';
    if (text !== '') stdout.write(text);
    this.#room = STDOUT_LAG_MAX_BYTES - (stdout.writableLength ?? 0);
    if (this.#dropped > 0 && this.#room > 0) this.#tellDropped();
  }

  /** Writes all queued lines. Later lines are written without a delay. */
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
