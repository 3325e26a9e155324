// Lines on a terminal that are drawn again in place. One write for each change, over what was there: nothing is blank between.
import type { Io } from '../io.ts';
import { cutVisible, visibleLength } from './text.ts';

const WIDTH_LEAST = 20;

/** The last column stays free: some terminals break the line there. */
export const widthOf = ({ columns }: Io['stdout']): number => Math.max(WIDTH_LEAST, (columns || 80) - 1);

export class RedrawnLines {
  readonly #stdout: Io['stdout'];
  readonly #mayWrap: boolean;
  #wanted: readonly string[] = [];
  #drawn: readonly string[] = [];

  /** `mayWrap`: who draws has cut the lines, and what is still too long is to be seen whole. */
  constructor(stdout: Io['stdout'], { mayWrap = false }: { readonly mayWrap?: boolean } = {}) {
    this.#stdout = stdout;
    this.#mayWrap = mayWrap;
  }

  /** `above`: lines that stay, and that these move below. */
  draw(lines: readonly string[], above: readonly string[] = []): void {
    this.#wanted = lines;
    const fitting = this.#fit(lines);
    const isSame = fitting.length === this.#drawn.length && fitting.every((line, at) => line === this.#drawn[at]);
    if (!isSame || above.length > 0) this.#over(above, fitting);
  }

  /** A line that stays, and below it the last that were drawn. */
  above(line: string): void {
    this.draw(this.#wanted, [line]);
  }

  /** Nothing of them is left, and what is written next stands where they began. */
  erase(): void {
    if (this.#drawn.length > 0) this.#stdout.write(`${this.#toStart()}\u001b[J`);
    this.#drawn = [];
  }

  #over(staying: readonly string[], lines: readonly string[]): void {
    const start = this.#drawn.length === 0 ? '' : this.#toStart();
    const end = start === '' ? '\n' : '\u001b[K\n';
    this.#drawn = lines;
    const text = [...staying, ...lines].map((line) => `${line}${end}`).join('');
    this.#stdout.write(`${start}${text}${start === '' ? '' : '\u001b[J'}`);
  }

  /** First to the margin: a key that was pressed, Ctrl-C too, is echoed behind the last line. */
  #toStart(): string {
    return `\r\u001b[${this.#rowsOf(this.#drawn)}A`;
  }

  /** Counted when it matters: a terminal that was made narrower has wrapped what stood there. */
  #rowsOf(lines: readonly string[]): number {
    const columns = this.#stdout.columns || 80;
    return lines.reduce((rows, line) => rows + Math.max(1, Math.ceil(visibleLength(line) / columns)), 0);
  }

  /** What has left the screen at the top could not be drawn over. */
  #fit(lines: readonly string[]): string[] {
    const width = widthOf(this.#stdout);
    const room = Math.max(2, (this.#stdout.rows || 24) - 1);
    const fitting = this.#mayWrap ? [...lines] : lines.map((line) => cutVisible(line, width));
    if (this.#rowsOf(fitting) <= room) return fitting;
    let shown = fitting.length;
    while (shown > 0 && this.#rowsOf(fitting.slice(0, shown)) > room - 1) shown -= 1;
    return [...fitting.slice(0, shown), `… and ${fitting.length - shown} more lines`];
  }
}
