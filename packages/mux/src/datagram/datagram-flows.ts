// The flows of one session, by the number that both sides know them by: over all of its carriers, and for datagrams that come by another way.
import type { DatagramStream } from './datagram-stream.ts';

/** A faster way than carriers, while there is one. Every datagram of an open flow asks it. */
export interface DatagramPathSlot {
  readonly isUp: boolean;
  /** Longer ones take the carrier. */
  readonly maxPayloadBytes: number;
  /** Before it returns the bytes are sealed or copied. false: dropped. */
  send(flow: number, bytes: Buffer, start: number, end: number): boolean;
}

/** As stream ids: the edge chooses even numbers, the client odd ones, so that two never choose the same. */
const PARITY = { edge: 0, client: 1 } as const;
const LAST_FLOW = 0xffff_fffe;

export class DatagramFlows {
  path: DatagramPathSlot | null = null;
  readonly #parity: 0 | 1;
  readonly #streams = new Map<number, DatagramStream>();
  #next: number;

  constructor(role: 'edge' | 'client') {
    this.#parity = PARITY[role];
    this.#next = -this.#parity;
  }

  get size(): number {
    return this.#streams.size;
  }

  /** A number of ours that no living flow has. After four thousand millions they begin anew. */
  nextFlow(): number {
    do {
      this.#next = this.#next >= LAST_FLOW ? 2 - this.#parity : this.#next + 2;
    } while (this.#streams.has(this.#next));
    return this.#next;
  }

  /** Whether the peer may open a flow of this number now. */
  isFree(flow: number): boolean {
    return flow % 2 !== this.#parity && !this.#streams.has(flow);
  }

  add(stream: DatagramStream): void {
    this.#streams.set(stream.flow, stream);
  }

  remove(stream: DatagramStream): void {
    this.#streams.delete(stream.flow);
  }

  /** One that came by the path. false: there is no such flow, or it is not open yet. */
  deliver(flow: number, bytes: Buffer, start: number, end: number): boolean {
    return this.#streams.get(flow)?.handleFromPath(bytes, start, end) ?? false;
  }
}
