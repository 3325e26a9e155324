// Collects the output lines of a program, and waits for lines that match a pattern.

import { createInterface } from 'node:readline';
import { type Readable, Writable } from 'node:stream';

export type OutputName = 'stdout' | 'stderr';

interface Waiter {
  readonly pattern: RegExp;
  readonly resolve: (match: RegExpExecArray) => void;
}

export class OutputLines {
  readonly stdout: string[] = [];
  readonly stderr: string[] = [];
  readonly #waiters = new Set<Waiter>();
  #isClosed = false;

  collect(stream: Readable, name: OutputName): void {
    createInterface({ input: stream }).on('line', (line) => this.#take(name, line));
  }

  /** Returns an output stream for code in the test's process. A line is collected as soon as the write returns. */
  writable(name: OutputName): Writable {
    let rest = '';
    return new Writable({
      decodeStrings: false,
      write: (chunk: string | Buffer, _encoding, done) => {
        const lines = (rest + chunk.toString()).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) this.#take(name, line);
        done();
      },
    });
  }

  /** Stops collecting. Later lines are dropped, because a killed program prints no more lines. */
  close(): void {
    this.#isClosed = true;
  }

  #take(name: OutputName, line: string): void {
    if (this.#isClosed) return;
    this[name].push(line);
    for (const waiter of this.#waiters) {
      const match = waiter.pattern.exec(line);
      if (match === null) continue;
      this.#waiters.delete(waiter);
      waiter.resolve(match);
    }
  }

  /** Finds the first matching line of either stream, already printed or still to come. The pattern must not be global. */
  waitFor(pattern: RegExp): { readonly found: Promise<RegExpExecArray>; giveUp(): void } {
    for (const line of [...this.stdout, ...this.stderr]) {
      const match = pattern.exec(line);
      if (match !== null) return { found: Promise.resolve(match), giveUp: () => {} };
    }
    let waiter: Waiter | undefined;
    const found = new Promise<RegExpExecArray>((resolve) => {
      waiter = { pattern, resolve };
      this.#waiters.add(waiter);
    });
    return { found, giveUp: () => void (waiter && this.#waiters.delete(waiter)) };
  }

  /** Returns the latest lines for messages of failed tests. */
  tail(): string {
    return [...this.stdout.slice(-20), ...this.stderr.slice(-20)].map((line) => `  | ${line}`).join('\n');
  }
}
