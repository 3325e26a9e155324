// Streams of a carrier and their ids. Ids belong to the carrier and only increase, so that a late frame of an ended stream can be
// distinguished from a frame of a stream that never existed.
import { LinkedSet } from '@tunnel/rules/collections';
import { MUX_LIMITS } from '../limits.ts';
import type { FramedStream } from '../stream/framed-stream.ts';
import { StreamIdMap } from './stream-id-map.ts';

/** Maximum number of open streams per carrier. Limits the tables of both sides. */
export const STREAMS_PER_CARRIER = 65_536;

/** First stream id of each side. The edge uses even ids, the client odd ids. */
const FIRST_ID = { edge: 2, client: 1 } as const;
/** No new streams are opened on a carrier beyond this id. */
const LAST_ID = 0xffff_0000;

export class StreamTable {
  readonly #parity: number;
  readonly #streams = new StreamIdMap<FramedStream>();
  /** Streams opened here that the peer has not answered yet, in order of opening. */
  readonly #opening = new LinkedSet<FramedStream>();
  #nextId: number;
  #lastPeerId = 0;

  constructor(role: 'edge' | 'client') {
    this.#nextId = FIRST_ID[role];
    this.#parity = FIRST_ID[role] % 2;
  }

  get size(): number {
    return this.#streams.size;
  }

  get hasRoom(): boolean {
    return this.#streams.size < STREAMS_PER_CARRIER && this.hasIds;
  }

  get hasIds(): boolean {
    return this.#nextId < LAST_ID;
  }

  /** Returns the id that the next locally opened stream must have when it is passed to addOwn(). */
  get nextId(): number {
    return this.#nextId;
  }

  get(id: number): FramedStream | undefined {
    return this.#streams.get(id);
  }

  values(): readonly FramedStream[] {
    return this.#streams.values();
  }

  /** Returns true if the id was opened at any time, because ids are used in ascending order. */
  wasOpen(id: number): boolean {
    return id % 2 === this.#parity ? id < this.#nextId : id <= this.#lastPeerId;
  }

  /** Checks an id chosen by the peer. Returns false if the id is from our range or not above the peer's last id. */
  takePeerId(id: number): boolean {
    if (id % 2 === this.#parity || id <= this.#lastPeerId) return false;
    this.#lastPeerId = id;
    return true;
  }

  addOwn(stream: FramedStream): void {
    this.#nextId += 2;
    this.#streams.add(stream);
    stream.unanswered = this.#opening.add(stream);
  }

  addPeers(stream: FramedStream): void {
    this.#streams.add(stream);
  }

  answered(stream: FramedStream): void {
    this.#opening.delete(stream.unanswered);
  }

  /** Removes a stream from the table. Returns false if the stream was not in the table. */
  remove(stream: FramedStream): boolean {
    this.#opening.delete(stream.unanswered);
    return this.#streams.delete(stream.id);
  }

  /** Removes and returns a stream opened here that the peer has not answered in time. Returns null if there is none. */
  takeOverdue(nowMs: number): FramedStream | null {
    // Streams are in order of opening, so if the first is young enough, all are.
    const stream = this.#opening.first;
    if (stream === null || nowMs - stream.openedAtMs < MUX_LIMITS.STREAM_OPEN_TIMEOUT_MS) return null;
    this.#opening.delete(stream.unanswered);
    return stream;
  }
}
