// Collects the datagrams of an event loop turn into sealed packets. Sealing, sending, receiving and opening cost the same for a packet with
// one datagram and for a packet with many. Nothing waits for further datagrams: the end of the turn sends what is there.
import { MUX_LIMITS } from '../limits.ts';
import { type TickFlushListener, tickFlush } from '../loop/tick-flush.ts';
import { FLOW_ID_BYTES, SEALED_KIND } from './sealed-datagram.ts';

/** Size of the payload length in front of every datagram of a batch. */
const LENGTH_BYTES = 2;
/** Bytes of a batched datagram in addition to its payload: length and flow id. */
export const BATCHED_HEADER_BYTES = LENGTH_BYTES + FLOW_ID_BYTES;
/** Maximum size of a batch, so that its packet is no larger than the packet of the largest single datagram. */
export const BATCH_MAX_BYTES = FLOW_ID_BYTES + MUX_LIMITS.DATAGRAM_PATH_PAYLOAD_BYTES;

/** Seals and sends the body of a packet. The memory is free after the call. */
export type SendBatch = (kind: typeof SEALED_KIND.DATAGRAM | typeof SEALED_KIND.DATAGRAMS, body: Buffer) => void;

export class DatagramBatch implements TickFlushListener {
  readonly #send: SendBatch;
  /** Datagrams of the current batch. Allocated with the first datagram, because most clients have no udp tunnel. */
  #block: Buffer | null = null;
  #fill = 0;
  #count = 0;
  #isScheduled = false;

  constructor(send: SendBatch) {
    this.#send = send;
  }

  /** Adds a datagram of at most DATAGRAM_PATH_PAYLOAD_BYTES. Sends the batch when another datagram of the same size would not fit. */
  add(flow: number, bytes: Buffer, start: number, end: number): void {
    const length = end - start;
    const size = BATCHED_HEADER_BYTES + length;
    if (this.#count > 0 && this.#fill + size > BATCH_MAX_BYTES) this.flush();
    this.#block ??= Buffer.allocUnsafeSlow(LENGTH_BYTES + BATCH_MAX_BYTES);
    const block = this.#block;
    const at = this.#fill;
    block[at] = length >>> 8;
    block[at + 1] = length;
    block[at + 2] = flow >>> 24;
    block[at + 3] = flow >>> 16;
    block[at + 4] = flow >>> 8;
    block[at + 5] = flow;
    bytes.copy(block, at + BATCHED_HEADER_BYTES, start, end);
    this.#fill = at + size;
    this.#count += 1;
    if (this.#fill + size > BATCH_MAX_BYTES) this.flush();
    else if (!this.#isScheduled) {
      this.#isScheduled = true;
      tickFlush.tell(this);
    }
  }

  /** Sends the collected datagrams. A single datagram is sent without its length, in a packet of kind DATAGRAM. */
  flush(): void {
    const [block, fill, count] = [this.#block, this.#fill, this.#count];
    if (block === null || count === 0) return;
    this.#fill = 0;
    this.#count = 0;
    if (count === 1) this.#send(SEALED_KIND.DATAGRAM, block.subarray(LENGTH_BYTES, fill));
    else this.#send(SEALED_KIND.DATAGRAMS, block.subarray(0, fill));
  }

  onTickFlush(): void {
    this.#isScheduled = false;
    this.flush();
  }
}

/** Calls `deliver` for every datagram of a batch. Returns false, without any call, if the body is not a list of whole datagrams. */
export const readBatch = (
  body: Buffer,
  deliver: (flow: number, bytes: Buffer, start: number, end: number) => void,
): boolean => {
  let at = 0;
  while (at + BATCHED_HEADER_BYTES <= body.length) at += BATCHED_HEADER_BYTES + body.readUInt16BE(at);
  if (at !== body.length || at === 0) return false;
  at = 0;
  while (at < body.length) {
    const start = at + BATCHED_HEADER_BYTES;
    const end = start + body.readUInt16BE(at);
    deliver(body.readUInt32BE(at + LENGTH_BYTES), body, start, end);
    at = end;
  }
  return true;
};
