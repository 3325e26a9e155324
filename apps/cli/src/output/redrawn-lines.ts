// Lines on a terminal that are redrawn in place. A redraw is a single write over the previous lines, so that the screen is never blank in
// between.
import type { Io } from '../io/io.ts';
import { cutVisible, visibleLength } from './text.ts';

const WIDTH_LEAST = 20;

/** Returns the usable width of the terminal. The last column stays free, because some terminals break the line there. */
export const widthOf = ({ columns }: Io['stdout']): number => Math.max(WIDTH_LEAST, (columns || 80) - 1);

/** Formats a permanent line above the redrawn lines, for a terminal with `width` columns. */
export type StayingLine = (width: number) => string;

interface Printed {
  readonly text: string;
  readonly render: StayingLine;
}

/** Maximum permanent lines remembered for reprinting. More lines than the screen has rows are of no use. */
const PRINTED_MAX = 300;

export class RedrawnLines {
  readonly #stdout: Io['stdout'];
  readonly #mayWrap: boolean;
  #wanted: readonly string[] = [];
  #drawn: readonly string[] = [];
  /** Permanent lines right above the redrawn lines, oldest first. */
  #printed: Printed[] = [];
  /** Width of the terminal at the last redraw. */
  #columns: number | undefined;

  /** Creates a redrawn area. `mayWrap` is true if the caller cuts its lines; a line that is still too long is then shown in full. */
  constructor(stdout: Io['stdout'], { mayWrap = false }: { readonly mayWrap?: boolean } = {}) {
    this.#stdout = stdout;
    this.#mayWrap = mayWrap;
  }

  /**
   * Redraws the lines, below new permanent lines from `above`. After a change of the window's width, the visible permanent lines are
   * printed again, because the terminal has broken lines that were as wide as the window.
   */
  draw(lines: readonly string[], above: readonly StayingLine[] = []): void {
    this.#wanted = lines;
    const fitting = this.#fit(lines);
    const isResized = this.#columns !== undefined && this.#columns !== this.#stdout.columns;
    const again = isResized ? this.#takeSeen() : [];
    this.#columns = this.#stdout.columns;
    const isSame = fitting.length === this.#drawn.length && fitting.every((line, at) => line === this.#drawn[at]);
    if (isSame && !isResized && above.length === 0) return;
    if (isResized) this.#wipe(again);
    this.#over([...again.map(({ render }) => render), ...above], fitting);
    if (isResized) this.#stdout.write('\u001b[J');
  }

  /** Prints a permanent line, and the last redrawn lines again below it. */
  above(line: string): void {
    this.draw(this.#wanted, [() => line]);
  }

  /** Erases the redrawn lines. The next output begins where the lines began. */
  erase(): void {
    if (this.#drawn.length > 0) this.#stdout.write(`${this.#toStart(this.#drawn)}\u001b[J`);
    this.#drawn = [];
  }

  /** Remembers permanent lines written by the caller after erase(), without a line break at the end. */
  wrote(text: string): void {
    this.#keep(text.split('\n').map((line) => ({ text: line, render: () => line })));
  }

  /**
   * Forgets all permanent lines. Called after erase() and a write of text that must not be printed again: the remembered lines are then
   * above that text.
   */
  forget(): void {
    this.#printed = [];
  }

  /**
   * Erases lines row by row. Overwriting a row broken by the terminal would leave its rest in the next row, and some terminals keep a
   * copy of a screen that is erased from its first row.
   */
  #wipe(again: readonly Printed[]): void {
    const rows = this.#rowsOf([...again.map(({ text }) => text), ...this.#drawn]);
    if (rows > 0) this.#stdout.write(`\r\u001b[K${'\u001b[1A\u001b[2K'.repeat(rows)}`);
    this.#drawn = [];
  }

  #over(above: readonly StayingLine[], lines: readonly string[]): void {
    const start = this.#drawn.length === 0 ? '' : this.#toStart(this.#drawn);
    const end = start === '' ? '\n' : '\u001b[K\n';
    this.#drawn = lines;
    const width = widthOf(this.#stdout);
    const staying = above.map((render) => ({ text: render(width), render }));
    this.#keep(staying);
    const text = [...staying.map((line) => line.text), ...lines].map((line) => `${line}${end}`).join('');
    this.#stdout.write(`${start}${text}${start === '' ? '' : '\u001b[J'}`);
  }

  #keep(lines: readonly Printed[]): void {
    this.#printed.push(...lines);
    if (this.#printed.length > PRINTED_MAX) this.#printed = this.#printed.slice(-PRINTED_MAX);
  }

  /** Returns the permanent lines that are fully visible above the redrawn lines. Earlier lines have scrolled away, and stay unchanged. */
  #takeSeen(): Printed[] {
    let room = (this.#stdout.rows || 24) - 1 - this.#rowsOf(this.#drawn);
    let first = this.#printed.length;
    while (first > 0) {
      room -= this.#rowsOf([(this.#printed[first - 1] as Printed).text]);
      if (room < 0) break;
      first -= 1;
    }
    const seen = this.#printed.slice(first);
    this.#printed = [];
    return seen;
  }

  /**
   * Returns the control sequence to the start of the lines. Moves to the left margin first, because a pressed key, even Ctrl-C, is echoed
   * behind the last line.
   */
  #toStart(lines: readonly string[]): string {
    return `\r\u001b[${this.#rowsOf(lines)}A`;
  }

  /** Counts the rows of lines for the current width, because a terminal that was made narrower has wrapped existing lines. */
  #rowsOf(lines: readonly string[]): number {
    const columns = this.#stdout.columns || 80;
    return lines.reduce((rows, line) => rows + Math.max(1, Math.ceil(visibleLength(line) / columns)), 0);
  }

  /** Limits the lines to the height of the terminal, because lines that have left the screen at the top cannot be redrawn. */
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
