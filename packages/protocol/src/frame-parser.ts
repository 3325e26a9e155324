// Parses frames from a byte stream with arbitrary chunk boundaries. DATA payloads are delivered in pieces without buffering. Datagrams are
// delivered whole, in place unless split between chunks. All other payloads are small and delivered whole. Memory is allocated only for a
// payload split between chunks, so an idle carrier costs only this object.
import { FRAME, type FrameTable, type FrameType, frameTable, readUint32 } from './frames.ts';
import { WIRE_LIMITS } from './limits.ts';

export interface FrameHandler {
  /** Called with a piece of a DATA payload, bytes[start, end). Valid only during the call unless the owner of `bytes` guarantees more. */
  onData(streamId: number, bytes: Uint8Array, start: number, end: number): void;
  /** Called with the whole payload of a DATAGRAM frame, bytes[start, end). Valid only during the call. */
  onDatagram(streamId: number, bytes: Uint8Array, start: number, end: number): void;
  /** Called with any other frame. `payload` is valid only during the call. */
  onFrame(type: FrameType, streamId: number, payload: Uint8Array): void;
}

export type ParserState = 'header' | 'data' | 'payload' | 'failed';

const HEADER = WIRE_LIMITS.FRAME_HEADER_BYTES;
const EMPTY = new Uint8Array(0);
const DATA_MAX = WIRE_LIMITS.FRAME_DATA_MAX_BYTES;
const VERSION_1 = frameTable([]);

export class FrameParser {
  #state: ParserState = 'header';
  #failure: string | null = null;
  readonly #handler: FrameHandler;
  readonly #frames: FrameTable;
  readonly #header = new Uint8Array(HEADER);
  #payload: Uint8Array = EMPTY;
  #have = 0;
  #need = 0;
  #type: FrameType = FRAME.DATA;
  #streamId = 0;

  constructor(handler: FrameHandler, frames: FrameTable = VERSION_1) {
    this.#handler = handler;
    this.#frames = frames;
  }

  get state(): ParserState {
    return this.#state;
  }

  /** Protocol violation because of which the parser rejects further bytes. Null while none was found. */
  get failure(): string | null {
    return this.#failure;
  }

  /** Parses frames from bytes[start, end). Returns false after a protocol violation. */
  push(bytes: Uint8Array, start: number, end: number): boolean {
    let at = start;
    while (at < end && this.#state !== 'failed') {
      if (this.#state === 'header') at = this.#takeHeader(bytes, at, end);
      else if (this.#state === 'data') at = this.#takeData(bytes, at, end);
      else at = this.#takePayload(bytes, at, end);
    }
    return this.#state !== 'failed';
  }

  #takeHeader(bytes: Uint8Array, at: number, end: number): number {
    if (this.#have === 0 && end - at >= HEADER) {
      this.#startFrame(bytes, at);
      return at + HEADER;
    }
    const taken = Math.min(HEADER - this.#have, end - at);
    this.#header.set(bytes.subarray(at, at + taken), this.#have);
    this.#have += taken;
    if (this.#have === HEADER) {
      this.#have = 0;
      this.#startFrame(this.#header, 0);
    }
    return at + taken;
  }

  #startFrame(header: Uint8Array, at: number): void {
    const type = header[at] ?? 0;
    const length = ((header[at + 1] ?? 0) << 16) | ((header[at + 2] ?? 0) << 8) | (header[at + 3] ?? 0);
    const streamId = readUint32(header, at + 4);
    // Fast path: nearly all frames are DATA, which exists in every version and needs no table lookup.
    if (type === FRAME.DATA && length <= DATA_MAX && streamId !== 0) {
      this.#streamId = streamId;
      this.#need = length;
      if (length > 0) this.#state = 'data';
      return;
    }
    const kind = this.#frames[type];
    if (kind === undefined) return this.#fail(`unknown frame type ${type}`);
    if (length > kind.max || length < kind.min) {
      return this.#fail(`frame of type ${type} with a payload of ${length} bytes`);
    }
    if ((kind.of === 'carrier') !== (streamId === 0)) return this.#fail(`frame of type ${type} on stream ${streamId}`);
    this.#type = type as FrameType;
    this.#streamId = streamId;
    this.#need = length;
    if (length === 0) this.#hand(EMPTY, 0, 0);
    else this.#state = 'payload';
  }

  #takeData(bytes: Uint8Array, at: number, end: number): number {
    const stop = Math.min(end, at + this.#need);
    this.#need -= stop - at;
    // The parser's state changes before the handler is called, because the handler may call fail().
    if (this.#need === 0) this.#state = 'header';
    this.#handler.onData(this.#streamId, bytes, at, stop);
    return stop;
  }

  #takePayload(bytes: Uint8Array, at: number, end: number): number {
    const stop = Math.min(end, at + this.#need);
    if (this.#have === 0 && stop - at === this.#need) {
      this.#finishPayload(bytes, at, stop);
      return stop;
    }
    if (this.#have === 0) this.#payload = new Uint8Array(this.#need);
    this.#payload.set(bytes.subarray(at, stop), this.#have);
    this.#have += stop - at;
    this.#need -= stop - at;
    if (this.#need === 0) this.#finishPayload(this.#payload, 0, this.#payload.length);
    return stop;
  }

  #finishPayload(bytes: Uint8Array, start: number, end: number): void {
    this.#payload = EMPTY;
    this.#have = 0;
    this.#state = 'header';
    this.#hand(bytes, start, end);
  }

  /** Delivers a payload. Datagrams are frequent, so no subarray is created for them. */
  #hand(bytes: Uint8Array, start: number, end: number): void {
    if (this.#type === FRAME.DATAGRAM) this.#handler.onDatagram(this.#streamId, bytes, start, end);
    else this.#handler.onFrame(this.#type, this.#streamId, bytes.subarray(start, end));
  }

  /** Called by the handler for a protocol violation. No further byte is parsed. */
  fail(reason: string): void {
    this.#fail(reason);
  }

  #fail(reason: string): void {
    this.#failure ??= reason;
    this.#state = 'failed';
  }
}
