// Finds the line of every key in a TOML text that the parser has already accepted, because the parser does not report positions.
import type { ConfigPath } from './layer.ts';

export class TomlLines {
  readonly #lines = new Map<string, number>();
  readonly #arrayLengths = new Map<string, number>();
  readonly #text: string;
  #at = 0;
  #line = 1;

  constructor(text: string) {
    this.#text = text;
    let table: ConfigPath = [];
    while (this.#skipBlank()) {
      if (this.#peek() === '[') table = this.#header();
      else {
        this.#note([...table, ...this.#keys('=')]);
        this.#skipValue();
      }
    }
  }

  /** Returns the line of a key, or of the nearest enclosing table or list if the key is missing. */
  lineOf(path: ConfigPath): number {
    for (let length = path.length; length > 0; length -= 1) {
      const line = this.#lines.get(JSON.stringify(path.slice(0, length)));
      if (line !== undefined) return line;
    }
    return 1;
  }

  #note(path: ConfigPath): void {
    for (let length = 1; length <= path.length; length += 1) {
      const key = JSON.stringify(path.slice(0, length));
      if (!this.#lines.has(key)) this.#lines.set(key, this.#line);
    }
  }

  #header(): ConfigPath {
    const isArray = this.#text.startsWith('[[', this.#at);
    this.#at += isArray ? 2 : 1;
    const names = this.#keys(']');
    if (isArray) this.#at += 1;
    const path: (string | number)[] = [];
    for (const [index, name] of names.entries()) {
      path.push(name);
      const key = JSON.stringify(path);
      let length = this.#arrayLengths.get(key);
      if (isArray && index === names.length - 1) this.#arrayLengths.set(key, (length = (length ?? 0) + 1));
      // A header below a list of tables refers to the last entry of the list.
      if (length !== undefined) path.push(length - 1);
    }
    this.#note(path);
    return path;
  }

  /** Reads a dotted key and the character that ends the key. */
  #keys(end: string): string[] {
    const names: string[] = [];
    let bare = '';
    for (;;) {
      const character = this.#peek();
      if (character === '"' || character === "'") {
        const quoted = this.#quoted();
        bare = quoted;
      } else {
        this.#at += 1;
        if (character === '.' || character === end || character === '') {
          names.push(bare);
          bare = '';
          if (character !== '.') return names;
        } else if (!/\s/.test(character)) bare += character;
      }
    }
  }

  /** Skips a value. A value ends at a line break outside of strings and brackets. */
  #skipValue(): void {
    let depth = 0;
    for (;;) {
      const character = this.#peek();
      if (character === '' || (character === '\n' && depth === 0)) return;
      if (character === '"' || character === "'") this.#quoted();
      else if (character === '#') this.#skipComment();
      else {
        if (character === '[' || character === '{') depth += 1;
        if (character === ']' || character === '}') depth -= 1;
        this.#advance();
      }
    }
  }

  #quoted(): string {
    const quote = this.#peek();
    const fence = this.#text.startsWith(quote.repeat(3), this.#at) ? quote.repeat(3) : quote;
    const start = this.#at + fence.length;
    this.#at = start;
    while (this.#peek() !== '' && !this.#text.startsWith(fence, this.#at)) {
      if (quote === '"' && this.#peek() === '\\') this.#advance();
      this.#advance();
    }
    const content = this.#text.slice(start, this.#at);
    this.#at += fence.length;
    // The content of a multi-line string may end with up to two quotes before the closing quotes.
    while (fence.length === 3 && this.#peek() === quote) this.#at += 1;
    return content;
  }

  /** Skips white space and comments. Returns false at the end of the text. */
  #skipBlank(): boolean {
    for (;;) {
      const character = this.#peek();
      if (character === '') return false;
      if (character === '#') this.#skipComment();
      else if (/\s/.test(character)) this.#advance();
      else return true;
    }
  }

  #skipComment(): void {
    while (this.#peek() !== '' && this.#peek() !== '\n') this.#at += 1;
  }

  #peek(): string {
    return this.#text.charAt(this.#at);
  }

  #advance(): void {
    if (this.#peek() === '\n') this.#line += 1;
    this.#at += 1;
  }
}
