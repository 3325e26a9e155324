// The streams of one carrier and their ids. Ids belong to the carrier and only rise, so a late frame of a stream that is over is told from one
// that never was.
import { LinkedSet } from '@tunnel/rules/collections';
import { MUX_LIMITS } from '../limits.ts';
import type { FramedStream } from '../stream/framed-stream.ts';
import { IdTable } from './id-table.ts';

/** open at once; bounds the tables of both sides */
export const STREAMS_PER_CARRIER = 65_536;

/** Even ids are opened by the edge, odd ones by the client. */
const FIRST_ID = { edge: 2, client: 1 } as const;
/** A carrier this near to the end of its ids takes no new streams. */
const LAST_ID = 0xffff_0000;

export class StreamTable {
  readonly #parity: number;
  readonly #streams = new IdTable<FramedStream>();
  /** Without an answer of the peer, in the order of opening. */
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

  /** The id that addOwn() gives away. */
  get nextId(): number {
    return this.#nextId;
  }

  get(id: number): FramedStream | undefined {
    return this.#streams.get(id);
  }

  values(): readonly FramedStream[] {
    return this.#streams.values();
  }

  /** Everything up to the last one was open once. */
  wasOpen(id: number): boolean {
    return id % 2 === this.#parity ? id < this.#nextId : id <= this.#lastPeerId;
  }

  /** The peer opens a stream. false: the id is ours to give, or not above its last one. */
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

  /** false: it was not here any more. */
  remove(stream: FramedStream): boolean {
    this.#opening.delete(stream.unanswered);
    return this.#streams.delete(stream.id);
  }

  /** Takes those out whose answer is overdue. */
  *overdue(nowMs: number): Generator<FramedStream> {
    for (let stream = this.#opening.first; stream !== null; stream = this.#opening.first) {
      // The first young one ends the look.
      if (nowMs - stream.openedAtMs < MUX_LIMITS.STREAM_OPEN_TIMEOUT_MS) return;
      this.#opening.delete(stream.unanswered);
      yield stream;
    }
  }
}
