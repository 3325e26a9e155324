// A message head read on demand from the connection's memory, without a copy.
import {
  fieldValueOf,
  isTextual,
  NOT_PLAIN,
  newPlainHead,
  parseRequestHead,
  parseResponseHead,
  type RequestHead,
  type ResponseHead,
  scanRequestHead,
  scanResponseHead,
} from '@tunnel/http1';

/** Head of an observed request. Valid only during the call. */
export interface OpeningHead {
  readonly method: string;
  readonly path: string;
  /** A copy of the whole request head, one character per byte. */
  readonly text: string;
  /** Id of the replayed request. Null or undefined for a visitor's request. */
  readonly replayOf?: string | null;
}

/** Header written by the edge as the last line of the head. The edge removes the header from visitors' requests. */
const REPLAY_LINE = /\r\nX-Tunnel-Replay: ([\w.-]{1,64})\r\n\r\n$/;
/** Maximum length of the header line that marks a replay, at the end of a request head. */
const REPLAY_LINE_MAX = 96;

/** Head of an observed final response. Valid only during the call. */
export interface AnsweringHead {
  readonly status: number;
  /** Whether people can read the body, by its content type. */
  readonly isTextual: boolean;
  readonly text: string;
}

/** Special values of `body`: chunked, or until the end of the connection. Other values are a length in bytes. */
export const IN_CHUNKS = -1;
export const UNTIL_CLOSE = -2;

const NOTHING: Buffer = Buffer.alloc(0);

/** Offsets of the last scanned head, without its text. Shared to avoid allocations. */
const plain = newPlainHead();

const LETTER_G = 0x47;
const LETTER_E = 0x45;
const LETTER_T = 0x54;

/** Head of a passing request, plain or fully parsed. Points into memory that the connection overwrites after the call. */
export class SniffedRequestHead implements OpeningHead {
  method = '';
  upgrade: string | null = null;
  body = 0;
  #bytes: Buffer = NOTHING;
  #start = 0;
  #end = 0;
  #pathFrom = 0;
  #pathTo = 0;
  #lastFrom = 0;
  /** The request head if it was parsed in full. Null for a plain head, which is scanned only. */
  #whole: RequestHead | null = null;

  /** Scans a request head quickly. Returns the index after a plain head, or NOT_PLAIN. */
  scan(bytes: Buffer, start: number, end: number): number {
    const next = scanRequestHead(bytes, start, end, plain);
    if (next === NOT_PLAIN) return NOT_PLAIN;
    this.#whole = null;
    this.#bytes = bytes;
    this.#start = start;
    this.#end = next;
    this.#pathFrom = plain.targetFrom;
    this.#pathTo = plain.targetTo;
    this.#lastFrom = plain.lastFrom;
    this.method = methodAt(bytes, start, plain.targetFrom - 1);
    this.upgrade = null;
    this.body = plain.isChunked ? IN_CHUNKS : Math.max(0, plain.contentLength);
    return next;
  }

  /** Parses a request head in full. Returns false if it is invalid. */
  read(text: string): boolean {
    const head = parseRequestHead(text);
    if (head.kind === 'problem') return false;
    this.#whole = head;
    this.method = head.method;
    this.upgrade = head.upgrade;
    this.body = bodyOf(head);
    return true;
  }

  get path(): string {
    return this.#whole === null ? this.#bytes.toString('latin1', this.#pathFrom, this.#pathTo) : this.#whole.path;
  }

  get text(): string {
    return this.#whole === null ? this.#bytes.toString('latin1', this.#start, this.#end) : this.#whole.text;
  }

  get replayOf(): string | null {
    if (this.#whole !== null) return replayIn(this.#whole.text.slice(-REPLAY_LINE_MAX));
    // Most requests are no replays. The T of X-Tunnel-Replay tells them apart without creating a text.
    if (this.#bytes[this.#lastFrom + 2] !== LETTER_T) return null;
    return replayIn(this.#bytes.toString('latin1', Math.max(this.#start, this.#end - REPLAY_LINE_MAX), this.#end));
  }
}

const replayIn = (endOfHead: string): string | null => REPLAY_LINE.exec(endOfHead)?.[1] ?? null;

export interface Asked {
  readonly method: string;
  readonly upgrade: string | null;
}

/** Content type of a connection's last response. Successive responses mostly have the same type, which is then judged without a text. */
export class LastType {
  #type: Buffer = NOTHING;
  #isTextual = false;

  isTextual(bytes: Buffer, from: number, to: number): boolean {
    if (!this.#isSame(bytes, from, to)) {
      const type = bytes.toString('latin1', from, to);
      this.#type = Buffer.from(type, 'latin1');
      this.#isTextual = isTextual(type);
    }
    return this.#isTextual;
  }

  #isSame(bytes: Buffer, from: number, to: number): boolean {
    const type = this.#type;
    if (to - from !== type.length) return false;
    for (let at = 0; at < type.length; at += 1) if (bytes[from + at] !== type[at]) return false;
    return true;
  }
}

/** Head of an observed response, scanned like SniffedRequestHead. */
export class SniffedResponseHead implements AnsweringHead {
  status = 0;
  isInterim = false;
  body = 0;
  #bytes: Buffer = NOTHING;
  #start = 0;
  #end = 0;
  #typeFrom = 0;
  #typeTo = 0;
  #whole: ResponseHead | null = null;
  readonly #lastType: LastType;

  constructor(lastType: LastType) {
    this.#lastType = lastType;
  }

  scan(bytes: Buffer, start: number, end: number, { method }: Asked): number {
    const next = scanResponseHead(bytes, start, end, plain);
    if (next === NOT_PLAIN) return NOT_PLAIN;
    const { status } = plain;
    this.#whole = null;
    this.#bytes = bytes;
    this.#start = start;
    this.#end = next;
    this.#typeFrom = plain.typeFrom;
    this.#typeTo = plain.typeTo;
    this.status = status;
    this.isInterim = false;
    if (method === 'HEAD' || status === 204 || status === 304) this.body = 0;
    else if (plain.isChunked) this.body = IN_CHUNKS;
    else this.body = plain.contentLength === -1 ? UNTIL_CLOSE : plain.contentLength;
    return next;
  }

  read(text: string, asked: Asked): boolean {
    const head = parseResponseHead(text, asked);
    if (head.kind === 'problem') return false;
    this.#whole = head;
    this.status = head.status;
    this.isInterim = head.interim;
    this.body = bodyOf(head);
    return true;
  }

  get isTextual(): boolean {
    if (this.#whole !== null) return isTextual(fieldValueOf(this.#whole.headers, 'content-type'));
    return this.#typeTo !== 0 && this.#lastType.isTextual(this.#bytes, this.#typeFrom, this.#typeTo);
  }

  get text(): string {
    return this.#whole === null ? this.#bytes.toString('latin1', this.#start, this.#end) : this.#whole.text;
  }
}

const bodyOf = ({ framing }: Pick<RequestHead, 'framing'>): number => {
  if (framing.kind === 'chunked') return IN_CHUNKS;
  if (framing.kind === 'until-close') return UNTIL_CLOSE;
  return framing.kind === 'length' ? framing.length : 0;
};

const methodAt = (bytes: Buffer, from: number, to: number): string => {
  const isGet =
    to - from === 3 && bytes[from] === LETTER_G && bytes[from + 1] === LETTER_E && bytes[from + 2] === LETTER_T;
  return isGet ? 'GET' : bytes.toString('latin1', from, to);
};
