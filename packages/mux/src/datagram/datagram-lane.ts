// What datagrams need of one carrier, both ways: the pace of those that leave, and SEEN for those that come.
import { decodeSeen, encodeSeen, WIRE_LIMITS } from '@tunnel/protocol';
import type { Carrier } from '../carrier/carrier.ts';
import type { Guarded } from '../loop/guard.ts';
import type { MuxClock, MuxTimer } from '../loop/mux-clock.ts';
import type { RoundTrip } from '../stream/flow-control.ts';
import { DATAGRAM_BEHIND_MS, DatagramPace } from './datagram-pace.ts';

/** how often at most a receiver says what it has taken */
export const DATAGRAM_SEEN_INTERVAL_MS = 10;

const HEADER = WIRE_LIMITS.FRAME_HEADER_BYTES;
/** Overdue by this, answers are looked for, so that it is known in time whether there are any. */
const DOUBTFUL_MS = DATAGRAM_BEHIND_MS / 2;

export class DatagramLane {
  readonly #carrier: Carrier;
  readonly #owner: Guarded;
  readonly #clock: MuxClock;
  readonly #roundTrip: RoundTrip;
  /** From the first that leaves on. */
  #pace: DatagramPace | null = null;
  /** Whether the sockets have been read since an answer became overdue. */
  #look: 'none' | 'begun' | 'done' = 'none';
  /** Of DATAGRAM frames, headers included: an empty datagram counts, too. */
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
   * A process that stood still for a while finds the datagrams of visitors before the answers that came meanwhile: a carrier is behind
   * only when a whole turn of the loop, which reads all sockets, has brought none.
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

  /** Not while datagrams are about to be behind: those of a new flow would be dropped, and its OPEN would cost all the same. */
  get takesFlows(): boolean {
    return this.#pace?.takesFlows(this.#clock.monotonic()) ?? true;
  }

  /** false: the peer cannot have seen this. */
  onSeen(payload: Uint8Array): boolean {
    const takenBytes = decodeSeen(payload);
    const pace = this.#pace;
    if (takenBytes === null || pace === null) return takenBytes === 0;
    const now = this.#clock.monotonic();
    const isPossible = pace.seen(takenBytes, now);
    // Of a carrier that stays late each answer would else be worth a turn of datagrams.
    if (!pace.isLate(now, DOUBTFUL_MS)) this.#look = 'none';
    return isPossible;
  }

  took(payloadBytes: number): void {
    this.#takenBytes += HEADER + payloadBytes;
  }

  /** All that came at once has been taken: it is told now, or a little later when it was told just now. */
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
