// Datagrams on a carrier: paces outgoing datagrams and sends SEEN for incoming datagrams.
import { decodeSeen, encodeSeen, WIRE_LIMITS } from '@tunnel/protocol';
import type { Carrier } from '../carrier/carrier.ts';
import type { Guarded } from '../loop/guard.ts';
import type { MuxClock, MuxTimer } from '../loop/mux-clock.ts';
import type { RoundTrip } from '../stream/flow-control.ts';
import { DATAGRAM_BEHIND_MS, DatagramPace } from './datagram-pace.ts';

/** Minimum interval between SEEN frames, which report received datagram bytes to the sender. */
export const DATAGRAM_SEEN_INTERVAL_MS = 10;

const HEADER = WIRE_LIMITS.FRAME_HEADER_BYTES;
/** Delay after which the sockets are checked for overdue answers, so that the result is known before DATAGRAM_BEHIND_MS. */
const DOUBTFUL_MS = DATAGRAM_BEHIND_MS / 2;

export class DatagramLane {
  readonly #carrier: Carrier;
  readonly #owner: Guarded;
  readonly #clock: MuxClock;
  readonly #roundTrip: RoundTrip;
  /** Limit for unseen datagrams of this carrier. Null until the first datagram is sent. */
  #pace: DatagramPace | null = null;
  /** Tracks whether all sockets have been read since the peer's SEEN frame became overdue. */
  #look: 'none' | 'begun' | 'done' = 'none';
  /** Total bytes of received DATAGRAM frames, including headers, so that empty datagrams count. */
  #takenBytes = 0;
  #toldBytes = 0;
  #toldAtMs = Number.NEGATIVE_INFINITY;
  #timer: MuxTimer | null = null;

  constructor(carrier: Carrier, owner: Guarded, clock: MuxClock, roundTrip: RoundTrip) {
    this.#carrier = carrier;
    this.#owner = owner;
    this.#clock = clock;
    this.#roundTrip = roundTrip;
  }

  send(streamId: number, bytes: Buffer, start: number, end: number): 'sent' | 'behind' {
    const length = HEADER + end - start;
    const now = this.#clock.monotonic();
    this.#pace ??= new DatagramPace(this.#roundTrip.isMeasured ? this.#roundTrip.latestMs : null);
    if (!this.#admits(this.#pace, length, now) || !this.#carrier.sendDatagram(streamId, bytes, start, end))
      return 'behind';
    this.#pace.sent(length, now);
    return 'sent';
  }

  /**
   * After a pause of the process, visitors' datagrams are read before the answers that arrived meanwhile. The carrier counts as behind only
   * if a full event loop turn, which reads all sockets, has brought no answer.
   */
  #admits(pace: DatagramPace, length: number, now: number): boolean {
    if (this.#look === 'none' && pace.isLate(now, DOUBTFUL_MS)) {
      this.#look = 'begun';
      setImmediate(this.#onLooked);
    }
    return this.#look === 'begun' ? pace.fits(length) : pace.admits(length, now);
  }

  readonly #onLooked = (): void => {
    if (this.#look === 'begun') this.#look = 'done';
  };

  /** False while datagrams are close to falling behind. Datagrams of a new flow would be dropped, and its OPEN would only add load. */
  get takesFlows(): boolean {
    return this.#pace?.takesFlows(this.#clock.monotonic()) ?? true;
  }

  /** Handles SEEN. Returns false if the peer reports more bytes than were sent. */
  onSeen(payload: Uint8Array): boolean {
    const takenBytes = decodeSeen(payload);
    const pace = this.#pace;
    if (takenBytes === null || pace === null) return takenBytes === 0;
    const now = this.#clock.monotonic();
    const isPossible = pace.seen(takenBytes, now);
    // Reset only if the carrier is in time again. Otherwise every answer of a carrier that stays late would admit another turn of
    // datagrams.
    if (!pace.isLate(now, DOUBTFUL_MS)) this.#look = 'none';
    return isPossible;
  }

  took(payloadBytes: number): void {
    this.#takenBytes += HEADER + payloadBytes;
  }

  /**
   * Sends SEEN after all received bytes were processed, or schedules SEEN if the last one was sent less than DATAGRAM_SEEN_INTERVAL_MS ago.
   */
  tellSeen(nowMs: number): void {
    if (this.#takenBytes === this.#toldBytes || this.#timer !== null) return;
    const waitMs = this.#toldAtMs + DATAGRAM_SEEN_INTERVAL_MS - nowMs;
    if (waitMs > 0) this.#timer = this.#clock.setTimeout(this.#onTimer, waitMs);
    else this.#tell(nowMs);
  }

  close(): void {
    this.#timer?.cancel();
  }

  readonly #onTimer = (): void => {
    this.#timer = null;
    try {
      this.#tell(this.#clock.monotonic());
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
