// A minimal terminal for tests: rows wrap and scroll, the cursor moves, erased text disappears, and a resize wraps the lines again.
import type { TextOutput } from '../io/io.ts';

interface Row {
  text: string;
  /** True if the next row continues the same line. */
  isWrapped: boolean;
}

const TOKEN = /\u001b\[(\d*)([A-Za-z])|[\s\S]/gu;

export class TerminalScreen implements TextOutput {
  readonly isTTY = true;
  columns: number;
  readonly rows: number;
  /** Complete output, including control sequences. */
  written = '';
  writes = 0;
  #grid: Row[] = [{ text: '', isWrapped: false }];
  #row = 0;
  #column = 0;

  constructor(columns = 80, rows = 24) {
    this.columns = columns;
    this.rows = rows;
  }

  /** The rows that a person sees or can scroll back to, without an empty last row. */
  get lines(): string[] {
    const rows = this.#grid.map(({ text }) => text.trimEnd());
    return rows.at(-1) === '' ? rows.slice(0, -1) : rows;
  }

  write(text: string): void {
    this.written += text;
    this.writes += 1;
    for (const [token, count, command] of text.matchAll(TOKEN)) {
      if (command !== undefined) this.#command(command, Number(count === '' ? 1 : count));
      else if (token === '\r') this.#column = 0;
      else if (token === '\n') this.#lineFeed();
      else this.#put(token);
    }
  }

  /** Shows the echo of a key on the screen. The echo comes from the terminal, so `written` does not include it. */
  echo(text: string): void {
    const before = this.written;
    this.write(text);
    this.written = before;
  }

  resize(columns: number): void {
    const lines: string[] = [];
    let cursor = { line: 0, offset: 0 };
    let isNew = true;
    this.#grid.forEach((row, at) => {
      if (isNew) lines.push('');
      const line = lines.length - 1;
      if (at === this.#row) cursor = { line, offset: (lines[line] as string).length + this.#column };
      lines[line] += row.isWrapped ? row.text.padEnd(this.columns) : row.text;
      isNew = !row.isWrapped;
    });
    this.columns = columns;
    this.#grid = [];
    lines.forEach((line, at) => {
      const parts = Array.from({ length: Math.max(1, Math.ceil(line.length / columns)) }, (_, part) =>
        line.slice(part * columns, (part + 1) * columns),
      );
      if (at === cursor.line) {
        const part = Math.min(parts.length - 1, Math.floor(cursor.offset / columns));
        this.#row = this.#grid.length + part;
        this.#column = cursor.offset - part * columns;
      }
      parts.forEach((text, part) => void this.#grid.push({ text, isWrapped: part < parts.length - 1 }));
    });
  }

  get #current(): Row {
    return this.#grid[this.#row] as Row;
  }

  #put(character: string): void {
    if (this.#column === this.columns) {
      this.#current.isWrapped = true;
      this.#lineFeed();
    }
    const row = this.#current;
    row.text =
      row.text.slice(0, this.#column).padEnd(this.#column) +
      character +
      row.text.slice(this.#column + character.length);
    this.#column += 1;
  }

  #lineFeed(): void {
    this.#row += 1;
    this.#column = 0;
    if (this.#row === this.#grid.length) this.#grid.push({ text: '', isWrapped: false });
  }

  #command(command: string, count: number): void {
    const row = this.#current;
    if (command === 'A') this.#row = Math.max(this.#row - count, Math.max(0, this.#grid.length - this.rows), 0);
    if (command === 'K' || command === 'J') {
      row.text = row.text.slice(0, this.#column);
      row.isWrapped = false;
    }
    if (command === 'J') this.#grid.length = this.#row + 1;
  }
}
