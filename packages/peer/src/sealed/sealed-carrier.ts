// Carrier between two clients over any byte duplex: the Noise handshake, then records with mux frames or messages between the two programs.
// The carrier is proven after the other side's first message was decrypted, and belongs to no session before.
import {
  BROKEN,
  type ByteDuplex,
  type ByteReader,
  type Carrier,
  type CarrierReceiver,
  type Guarded,
  MUX_LIMITS,
} from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { Clock, Timer } from '@tunnel/runtime';
import { NoiseFailure, NoiseHandshake, type NoiseOptions } from './noise.ts';
import { OpenedFrames } from './opened-frames.ts';
import { LENGTH_BYTES, PEER_RECORD_MAX_BYTES, RecordOpener, RecordSealer } from './record-cipher.ts';
import { type RecordHandler, RecordReader } from './record-reader.ts';
import { RECORD_KIND, SealedWriter } from './sealed-writer.ts';

/** Maximum size of a handshake message with its hello. Limits memory held for unauthenticated peers. */
const PEER_HANDSHAKE_MAX_BYTES = 1024;
/** Timeout of the handshake: two messages through the relay. Longer than an edge takes to open a stream to a slow publisher. */
export const PEER_HANDSHAKE_TIMEOUT_MS = 10_000;

/** 'proof': the other side lacks the secret, or data was altered in transit. 'lost': the duplex ended. */
export type SealedEnd = 'proof' | 'lost';

export interface SealedOwner extends Guarded {
  /**
   * Called when the other side has proven the secret; `hello` is the payload of its handshake message. Add the carrier to a session now or
   * on the first message.
   */
  onProven(carrier: SealedCarrier, hello: Buffer): void;
  onMessage(carrier: SealedCarrier, bytes: Buffer): void;
  /** Called once if the carrier ends before it is added to a session. Afterwards the session is notified instead. */
  onFailed(carrier: SealedCarrier, end: SealedEnd, text: string): void;
}

export interface SealedOptions extends Pick<NoiseOptions, 'role' | 'psk' | 'prologue'> {
  /** Payload of our handshake message. Any holder of the secret can read it, so it must not contain confidential session data. */
  readonly hello: Buffer;
  readonly clock: Clock;
}

/** Sent instead of a message to report a failed decryption. An attacker gains nothing beyond cutting the connection. */
const REFUSAL = Buffer.alloc(LENGTH_BYTES);

export class SealedCarrier implements Carrier, ByteReader, RecordHandler {
  readonly kind = 'sealed';
  readonly readPath = 'fallback';
  readonly #duplex: ByteDuplex;
  readonly #owner: SealedOwner;
  readonly #role: NoiseOptions['role'];
  readonly #reader: RecordReader;
  readonly #frames = new OpenedFrames();
  #handshake: NoiseHandshake | null;
  #hello: Buffer;
  #timer: Timer | null;
  #linger: Timer | null = null;
  readonly #clock: Clock;
  #handshakeHash: Buffer | null = null;
  #writer: SealedWriter | null = null;
  #opener: RecordOpener | null = null;
  #receiver: CarrierReceiver | null = null;
  #isProven = false;
  #closed = false;
  /** Number of records decrypted so far: authenticated activity of the other side. */
  recordsOpened = 0;
  bytesReceived = 0;

  constructor(duplex: ByteDuplex, options: SealedOptions, owner: SealedOwner) {
    this.#duplex = duplex;
    this.#owner = owner;
    this.#role = options.role;
    this.#hello = options.hello;
    this.#handshake = new NoiseHandshake(options);
    this.#reader = new RecordReader(this, PEER_HANDSHAKE_MAX_BYTES);
    this.#clock = options.clock;
    this.#timer = options.clock.setTimeout(() => this.#closeLate(SILENT), PEER_HANDSHAKE_TIMEOUT_MS);
  }

  /** Starts the handshake, after the owner has stored the carrier, because bytes received already are processed immediately. */
  begin(): void {
    if (this.#role === 'initiator') this.#sendHandshake();
    this.#duplex.read(this);
  }

  /** Identifies this handshake. The direct path uses the relay's hash as its prologue. */
  get handshakeHash(): Buffer {
    if (this.#handshakeHash === null) throw new Error('the handshake has not finished');
    return this.#handshakeHash;
  }

  get isProven(): boolean {
    return this.#isProven;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  get bytesSent(): number {
    return this.#writer?.bytesSent ?? 0;
  }

  get queuedBytes(): number {
    return this.#writer?.queuedBytes ?? 0;
  }

  // ---- as a carrier ----

  start(receiver: CarrierReceiver): void {
    this.#receiver = receiver;
    if (!this.#closed) return;
    // The peer closed the connection before start() was called. onClosed is never called synchronously.
    setImmediate(() => {
      try {
        receiver.onClosed('closed');
      } catch (error) {
        receiver.report(error, 'peer.close');
      }
    });
  }

  send(frame: Uint8Array, length?: number): void {
    this.#writer?.send(frame, length);
  }

  sendMessage(bytes: Buffer): void {
    this.#writer?.sendMessage(bytes);
  }

  /** Sends a DATA frame. The payload is encrypted at once, so its memory is always free after the call. */
  sendData(streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (!this.#closed) this.#writer?.sendData(streamId, bytes, start, end);
    return true;
  }

  sendDatagram(streamId: number, bytes: Buffer, start: number, end: number): boolean {
    return !this.#closed && (this.#writer?.sendDatagram(streamId, bytes, start, end) ?? false);
  }

  isFull(bytes: number): boolean {
    return this.#writer?.isFull(bytes) ?? false;
  }

  end(): void {
    if (this.#closed) return;
    if (this.#writer === null) return this.destroy('closed');
    this.#writer.end(NOTHING_TO_DO);
    // Waits for the peer to close its side, up to the linger timeout.
    this.#linger ??= this.#clock.setTimeout(() => this.#closeLate(CLOSED), MUX_LIMITS.CARRIER_LINGER_MS);
  }

  destroy(reason: string): void {
    this.#close({ code: 'cancelled', text: reason }, 'lost');
  }

  // ---- from the duplex ----

  /** Handles bytes from the other side. Accepts all: the streams' credit limits how much can arrive. */
  onData(bytes: Buffer, start: number, end: number): boolean {
    if (this.#closed) return true;
    this.bytesReceived += end - start;
    try {
      this.#reader.push(bytes, start, end);
      this.#handOnFrames();
    } catch (error) {
      if (!(error instanceof NoiseFailure)) throw error;
      // Records that were decrypted before the failure are valid, so their frames are delivered.
      this.#handOnFrames();
      this.#refuse(error.message);
    }
    return true;
  }

  onDrain(): void {
    this.#writer?.onDrain();
  }

  onEnd(): void {
    this.#close({ code: 'cancelled', text: 'closed by the peer' }, 'lost');
  }

  onReset(reason: StreamReason): void {
    this.#close(reason, 'lost');
  }

  abandon(error: unknown, where: string): void {
    try {
      if (this.#receiver === null) this.#owner.abandon(error, where);
      else this.#receiver.report(error, where);
    } finally {
      this.#close(BROKEN, 'lost');
    }
  }

  // ---- from the reader ----

  onRecord(bytes: Buffer, start: number, end: number): boolean {
    if (this.#opener === null) this.#readHandshake(bytes.subarray(start, end));
    else this.#open(this.#opener, bytes, start, end);
    return !this.#closed;
  }

  onRefusal(): void {
    this.#handOnFrames();
    this.#close({ code: 'cancelled', text: 'the other side could not decrypt a record' }, 'proof');
  }

  onOversize(length: number): void {
    this.#handOnFrames();
    this.#close({ code: 'protocol-violation', text: `a record of ${length} bytes is too long` }, 'proof');
  }

  #open(opener: RecordOpener, bytes: Buffer, start: number, end: number): void {
    const plain = opener.open(bytes, start, end);
    this.recordsOpened += 1;
    if (!this.#isProven) this.#proven();
    if (this.#closed) return;
    if (plain[0] === RECORD_KIND.MESSAGE) {
      this.#handOnFrames();
      if (!this.#closed) this.#owner.onMessage(this, plain.subarray(1));
    } else if (plain[0] !== RECORD_KIND.FRAMES || this.#receiver === null) {
      throw new NoiseFailure('unexpected record');
    } else this.#frames.add(plain, 1, this.#receiver);
  }

  #handOnFrames(): void {
    if (!this.#closed && this.#receiver !== null) this.#frames.handOn(this.#receiver);
  }

  // ---- the handshake ----

  #sendHandshake(): void {
    const message = (this.#handshake as NoiseHandshake).write(this.#hello);
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt16BE(message.length);
    this.#duplex.write(Buffer.concat([length, message]), 0, LENGTH_BYTES + message.length, false);
  }

  #readHandshake(message: Buffer): void {
    const handshake = this.#handshake as NoiseHandshake;
    const hello = handshake.read(message);
    const isResponder = this.#role === 'responder';
    if (isResponder) this.#sendHandshake();
    this.#hello = hello;
    const { sendKey, receiveKey, handshakeHash } = handshake.result();
    this.#handshake = null;
    this.#handshakeHash = handshakeHash;
    this.#opener = new RecordOpener(receiveKey);
    this.#writer = new SealedWriter(this.#duplex, new RecordSealer(sendKey), {
      onReady: () => this.#receiver?.onReady(),
      onStuck: (bytes) => this.destroy(`${bytes} bytes queued, and the peer does not read`),
      abandon: (error, where) => this.abandon(error, where),
    });
    this.#reader.maxBytes = PEER_RECORD_MAX_BYTES;
    // Only the holder of the secret can answer our fresh key. The first message, however, may be a replay; its sender is proven by its next
    // record.
    if (!isResponder) this.#proven();
  }

  #proven(): void {
    this.#isProven = true;
    this.#timer?.cancel();
    this.#timer = null;
    this.#owner.onProven(this, this.#hello);
  }

  #refuse(text: string): void {
    const reason = { code: 'protocol-violation', text } as const;
    if (this.#isProven || this.#closed) return this.#close(reason, 'proof');
    this.#duplex.write(REFUSAL, 0, REFUSAL.length, false);
    // Ends the connection normally first, because a reset could overtake the refusal just written.
    this.#duplex.end();
    this.#clock.setTimeout(() => this.#duplex.reset(reason), MUX_LIMITS.CARRIER_LINGER_MS).unref?.();
    this.#finish(reason, 'proof');
  }

  // ---- the end ----

  #closeLate(reason: StreamReason): void {
    try {
      this.#close(reason, 'lost');
    } catch (error) {
      this.abandon(error, 'peer.close');
    }
  }

  #close(reason: StreamReason, end: SealedEnd): void {
    if (this.#closed) return;
    this.#duplex.reset(reason);
    this.#finish(reason, end);
  }

  #finish(reason: StreamReason, end: SealedEnd): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#linger?.cancel();
    this.#reader.close();
    this.#frames.forget();
    this.#writer?.close();
    if (this.#receiver !== null) this.#receiver.onClosed(reason.text);
    else this.#owner.onFailed(this, this.#isProven ? 'lost' : end, reason.text);
  }
}

const CLOSED: StreamReason = { code: 'cancelled', text: 'closed' };
const SILENT: StreamReason = { code: 'timeout', text: 'no response to the handshake' };
const NOTHING_TO_DO = (): void => {};
