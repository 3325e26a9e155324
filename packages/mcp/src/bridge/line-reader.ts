// Lines out of chunks, none longer than a bound. Of a longer one nothing is kept; whoever waits for it is told by its id.

export interface LineHandlers {
  onLine(line: string): void;
  /** The line was longer than the bound. `id`: of the message it held, null when it has none that is a number. */
  onTooLong(id: number | null): void;
}

const NEWLINE = 0x0a;
const NO_BYTES = Buffer.alloc(0);

export class LineReader {
  readonly #maxBytes: number;
  readonly #handlers: LineHandlers;
  #parts: Buffer[] = [];
  #bytes = 0;
  /** Of the line that is too long; null while it is not. */
  #skipped: TopLevelId | null = null;

  constructor(maxBytes: number, handlers: LineHandlers) {
    this.#maxBytes = maxBytes;
    this.#handlers = handlers;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      this.#take(chunk.subarray(from, at));
      this.#finish();
      from = at + 1;
    }
    if (from < chunk.length) this.#take(chunk.subarray(from));
  }

  /** The stream is over: what has no end is a line, too. */
  end(): void {
    if (this.#bytes > 0 || this.#skipped !== null) this.#finish();
  }

  #take(part: Buffer): void {
    if (this.#skipped !== null) return this.#skipped.read(part);
    this.#bytes += part.length;
    this.#parts.push(part);
    if (this.#bytes <= this.#maxBytes) return;
    this.#skipped = new TopLevelId();
    for (const kept of this.#parts) this.#skipped.read(kept);
    this.#parts = [];
    this.#bytes = 0;
  }

  #finish(): void {
    const skipped = this.#skipped;
    const line = this.#parts.length === 0 ? NO_BYTES : Buffer.concat(this.#parts);
    this.#skipped = null;
    this.#parts = [];
    this.#bytes = 0;
    if (skipped !== null) return this.#handlers.onTooLong(skipped.id);
    const text = line.toString('utf8').trim();
    if (text !== '') this.#handlers.onLine(text);
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const SPACE = 0x20;
const OPENING = new Set([0x7b, 0x5b]);
const CLOSING = new Set([0x7d, 0x5d]);
/** Longer than any key or number that is looked for. */
const WORD_MAX = 20;

/**
 * Finds `"id": 7` of the outermost object in JSON that passes by and is not kept: the order of members is free, and a result may hold
 * other ids deeper down.
 */
export class TopLevelId {
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  /** The string or the number that is being read at depth 1, as far as it can matter. */
  #word = '';
  #isText = false;
  #key = '';
  #id: number | null = null;

  get id(): number | null {
    return this.#id;
  }

  read(bytes: Buffer): void {
    for (const byte of bytes) {
      if (this.#inString) this.#readString(byte);
      else this.#readPlain(byte);
    }
  }

  #readString(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === BACKSLASH) this.#isEscaped = true;
    else if (byte === QUOTE) this.#inString = false;
    if (this.#depth === 1 && this.#inString) this.#append(byte);
  }

  #readPlain(byte: number): void {
    if (byte === QUOTE) {
      this.#inString = true;
      this.#startWord(true);
    } else if (OPENING.has(byte)) {
      this.#depth += 1;
      this.#startWord(false);
    } else if (CLOSING.has(byte)) {
      if (this.#depth === 1) this.#endMember();
      this.#depth -= 1;
    } else if (this.#depth === 1) this.#readMember(byte);
  }

  #readMember(byte: number): void {
    if (byte === COLON) {
      this.#key = this.#word;
      this.#startWord(false);
    } else if (byte === COMMA) this.#endMember();
    else if (byte > SPACE) this.#append(byte);
  }

  #startWord(isText: boolean): void {
    this.#word = '';
    this.#isText = isText;
  }

  #append(byte: number): void {
    if (this.#word.length < WORD_MAX) this.#word += String.fromCharCode(byte);
  }

  #endMember(): void {
    if (this.#key === 'id' && !this.#isText && /^\d{1,15}$/.test(this.#word)) this.#id = Number(this.#word);
    this.#key = '';
    this.#startWord(false);
  }
}
