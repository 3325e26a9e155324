// Lines on a terminal that are drawn again in place. One write for each change, over what was there: nothing is blank between.
import type { Io } from '../io/io.ts';
import { cutVisible, visibleLength } from './text.ts';

const WIDTH_LEAST = 20;

/** The last column stays free: some terminals break the line there. */
export const widthOf = ({ columns }: Io['stdout']): number => Math.max(WIDTH_LEAST, (columns || 80) - 1);

/** A line that stays above the drawn ones, for a terminal of so many columns. */
export type StayingLine = (width: number) => string;

interface Printed {
  readonly text: string;
  readonly render: StayingLine;
}

/** Lines above the drawn ones that are kept to be printed again: more than a screen has rows are of no use. */
const PRINTED_MAX = 300;

export class RedrawnLines {
  readonly #stdout: Io['stdout'];
  readonly #mayWrap: boolean;
  #wanted: readonly string[] = [];
  #drawn: readonly string[] = [];
  /** The lines right above the drawn ones, oldest first. */
  #printed: Printed[] = [];
  /** Of the terminal when these were printed. */
  #columns: number | undefined;

  /** `mayWrap`: who draws has cut the lines, and what is still too long is to be seen whole. */
  constructor(stdout: Io['stdout'], { mayWrap = false }: { readonly mayWrap?: boolean } = {}) {
    this.#stdout = stdout;
    this.#mayWrap = mayWrap;
  }

  /**
   * `above`: lines that stay, and that these move below. In a window of another width those that can be seen are printed again: the terminal has broken
   * lines that were as wide as the window was.
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

  /** A line that stays, and below it the last that were drawn. */
  above(line: string): void {
    this.draw(this.#wanted, [() => line]);
  }

  /** Nothing of them is left, and what is written next stands where they began. */
  erase(): void {
    if (this.#drawn.length > 0) this.#stdout.write(`${this.#toStart(this.#drawn)}\u001b[J`);
    this.#drawn = [];
  }

  /** Lines that were written after erase(), without a line break at the end. */
  wrote(text: string): void {
    this.#keep(text.split('\n').map((line) => ({ text: line, render: () => line })));
  }

  /** Something was written after erase() that is not ours to print again: all that is kept stands above it. */
  forget(): void {
    this.#printed = [];
  }

  /**
   * Row by row: what is written over a row that the terminal has broken would still go on in the next one, and some terminals keep a copy of a screen
   * that is wiped from its first row on.
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

  /** Those of the printed lines that are on the screen, whole, above the drawn ones. The others have scrolled away, and stay as they are. */
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

  /** First to the margin: a key that was pressed, Ctrl-C too, is echoed behind the last line. */
  #toStart(lines: readonly string[]): string {
    return `\r\u001b[${this.#rowsOf(lines)}A`;
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
