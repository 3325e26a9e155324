// Lines on a terminal that are drawn again in place. One write for each change, over what was there: nothing is blank between.
import type { Io } from '../io.ts';
import { cutVisible } from './text.ts';

export class RedrawnLines {
  readonly #stdout: Io['stdout'];
  #wanted: readonly string[] = [];
  #drawn: readonly string[] = [];

  constructor(stdout: Io['stdout']) {
    this.#stdout = stdout;
  }

  draw(lines: readonly string[]): void {
    this.#wanted = lines;
    const fitting = this.#fit(lines);
    if (fitting.length === this.#drawn.length && fitting.every((line, at) => line === this.#drawn[at])) return;
    this.#over(fitting);
  }

  /** A line that stays, and below it the last that were drawn. */
  above(line: string): void {
    const fitting = this.#fit(this.#wanted);
    this.#over([line, ...fitting]);
    this.#drawn = fitting;
  }

  #over(lines: readonly string[]): void {
    const before = this.#drawn.length;
    this.#drawn = lines;
    if (before === 0) this.#stdout.write(`${lines.join('\n')}\n`);
    else this.#stdout.write(`\u001b[${before}A${lines.map((line) => `${line}\u001b[K\n`).join('')}\u001b[J`);
  }

  /** Lines that wrap, or have left the screen, could not be drawn over by counting them. */
  #fit(lines: readonly string[]): string[] {
    const width = Math.max(20, (this.#stdout.columns || 80) - 1);
    const height = Math.max(2, (this.#stdout.rows || 24) - 1);
    const shown = lines.length > height ? lines.slice(0, height - 1) : lines;
    const rest = lines.length - shown.length;
    return [...shown.map((line) => cutVisible(line, width)), ...(rest === 0 ? [] : [`… and ${rest} more lines`])];
  }
}
