// Flows of a session by flow number. Numbers are unique across all carriers, and also identify flows of datagrams on the UDP path.
import type { DatagramStream } from './datagram-stream.ts';

/** A faster path for datagrams than carriers. Checked for every datagram of an open flow. */
export interface DatagramPathSlot {
  readonly isUp: boolean;
  /** Maximum payload of a datagram on the UDP path. Larger datagrams use the carrier. */
  readonly maxPayloadBytes: number;
  /** Seals or copies the bytes before returning. Returns false if the datagram was dropped. */
  send(flow: number, bytes: Buffer, start: number, end: number): boolean;
}

/** The edge uses even flow numbers, the client odd numbers, as with stream ids. Both sides can never choose the same number. */
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

  /** Returns a number of our range that no open flow uses. Numbers wrap around after 2^32. */
  nextFlow(): number {
    do {
      this.#next = this.#next >= LAST_FLOW ? 2 - this.#parity : this.#next + 2;
    } while (this.#streams.has(this.#next));
    return this.#next;
  }

  /** Returns true if the peer can open a flow with this number now. */
  isFree(flow: number): boolean {
    return flow % 2 !== this.#parity && !this.#streams.has(flow);
  }

  add(stream: DatagramStream): void {
    this.#streams.set(stream.flow, stream);
  }

  remove(stream: DatagramStream): void {
    this.#streams.delete(stream.flow);
  }

  /** Delivers a datagram received on the UDP path. Returns false if the flow does not exist or is not open yet. */
  deliver(flow: number, bytes: Buffer, start: number, end: number): boolean {
    return this.#streams.get(flow)?.handleFromPath(bytes, start, end) ?? false;
  }
}
