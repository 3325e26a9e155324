// What datagrams need of one carrier, both ways: the pace of those that leave, and SEEN for those that come.
import { decodeSeen, encodeSeen, WIRE_LIMITS } from '@tunnel/protocol';
import type { Carrier } from './carrier.ts';
import { DatagramPace } from './datagram-pace.ts';
import type { RoundTrip } from './flow-control.ts';
import type { Guarded } from './guard.ts';
import { MUX_LIMITS } from './limits.ts';

const HEADER = WIRE_LIMITS.FRAME_HEADER_BYTES;

export class DatagramLane {
  readonly #carrier: Carrier;
  readonly #owner: Guarded;
  readonly #clock: { now(): number };
  readonly #roundTrip: RoundTrip;
  /** From the first that leaves on. */
  #pace: DatagramPace | null = null;
  /** Of DATAGRAM frames, headers included: an empty datagram counts, too. */
  #takenBytes = 0;
  #toldBytes = 0;
  #toldAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;

  constructor(carrier: Carrier, owner: Guarded, clock: { now(): number }, roundTrip: RoundTrip) {
    this.#carrier = carrier;
    this.#owner = owner;
    this.#clock = clock;
    this.#roundTrip = roundTrip;
  }

  send(streamId: number, bytes: Buffer, start: number, end: number): 'sent' | 'behind' {
    const length = HEADER + end - start;
    const now = this.#clock.now();
    this.#pace ??= new DatagramPace(this.#roundTrip.isMeasured ? this.#roundTrip.latestMs : null);
    if (!this.#pace.admits(length, now) || !this.#carrier.sendDatagram(streamId, bytes, start, end)) return 'behind';
    this.#pace.sent(length, now);
    return 'sent';
  }

  /** Not while datagrams are about to be behind: those of a new flow would be dropped, and its OPEN would cost all the same. */
  get takesFlows(): boolean {
    return this.#pace?.takesFlows(this.#clock.now()) ?? true;
  }

  /** false: the peer cannot have seen this. */
  onSeen(payload: Uint8Array): boolean {
    const takenBytes = decodeSeen(payload);
    return takenBytes !== null && (this.#pace?.seen(takenBytes, this.#clock.now()) ?? takenBytes === 0);
  }

  took(payloadBytes: number): void {
    this.#takenBytes += HEADER + payloadBytes;
  }

  /** All that came at once has been taken: it is told now, or a little later when it was told just now. */
  tellSeen(nowMs: number): void {
    if (this.#takenBytes === this.#toldBytes || this.#timer !== null) return;
    const waitMs = this.#toldAtMs + MUX_LIMITS.DATAGRAM_SEEN_INTERVAL_MS - nowMs;
    if (waitMs > 0) this.#timer = setTimeout(this.#onTimer, waitMs).unref();
    else this.#tell(nowMs);
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  readonly #onTimer = (): void => {
    this.#timer = null;
    try {
      this.#tell(this.#clock.now());
    } catch (error) {
      this.#owner.abandon(error, 'carrier.seen');
    }
  };

  #tell(nowMs: number): void {
    this.#toldBytes = this.#takenBytes;
    this.#toldAtMs = nowMs;
    this.#carrier.send(encodeSeen(this.#takenBytes));
  }
}
