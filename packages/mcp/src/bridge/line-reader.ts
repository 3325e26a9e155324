// Splits chunks into lines of limited length. Longer lines are discarded, but the id of their JSON-RPC message is reported, so that the
// waiting caller gets an error.

export interface LineHandlers {
  onLine(line: string): void;
  /** Called for a line above the limit. `id` is the id of the message in the line, or null if the message has no numeric id. */
  onTooLong(id: number | null): void;
}

const NEWLINE = 0x0a;
const NO_BYTES = Buffer.alloc(0);

export class LineReader {
  readonly #maxBytes: number;
  readonly #handlers: LineHandlers;
  #parts: Buffer[] = [];
  #bytes = 0;
  /** Reader for the id of the current line if the line is too long. Null for a line within the limit. */
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

  /** Ends the stream. Remaining text without a line break counts as a line. */
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
/** Maximum characters stored of a key or number. Longer than the key `id` and any valid id. */
const WORD_MAX = 20;

/**
 * Finds the numeric `id` of the outermost object in streamed JSON without storing the JSON. Members can come in any order, and a result
 * may contain other ids at deeper levels.
 */
export class TopLevelId {
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  /** Beginning of the current string or number at depth 1, up to WORD_MAX characters. */
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
