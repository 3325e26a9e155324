// The flows of one client: how many there may be, and which are over because nothing passes. One look at all of them every few
// seconds, and no timer for any.
import { type StreamReason, WIRE_LIMITS } from '@tunnel/protocol';
import { descriptorLimit } from '@tunnel/runtime';
import { CLIENT_LIMITS } from '../limits.ts';

/** part of the descriptors of the process that they may take */
const FLOWS_DESCRIPTOR_SHARE = 0.75;
/** the edge ends a silent flow; this much later the client does by itself */
export const FLOW_IDLE_GRACE_MS = 30_000;
/** how often silent flows are looked for */
export const FLOW_LOOK_EVERY_MS = 5000;
/** a flow that is silent for this long is not waited for when the client ends */
export const FLOW_DRAIN_SILENCE_MS = 2000;

/** What the table needs to know of a flow. */
export interface SilentFlow {
  silentFor(now: number): number;
  end(reason: StreamReason): void;
}

const SILENT: StreamReason = { code: 'timeout', text: 'idle for too long' };

/**
 * The memory from which the flows of a client send. The bytes of a stream are borrowed, and a socket whose kernel buffer is full keeps the memory that it
 * was given; nearly always the kernel takes a datagram at once, and the memory is free again.
 */
export class SendMemory {
  #free: Buffer | null = null;

  take(): Buffer {
    this.#free ??= Buffer.allocUnsafeSlow(WIRE_LIMITS.DATAGRAM_MAX_BYTES);
    return this.#free;
  }

  /** A socket keeps the memory of the last take(). */
  leave(): void {
    this.#free = null;
  }
}

export class OpenFlows {
  readonly memory = new SendMemory();
  /** With how long each may be silent. */
  readonly #flows = new Map<SilentFlow, number>();
  readonly #descriptors: () => number;
  #limit: number | null = null;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #isDraining = false;

  constructor(descriptors: () => number = descriptorLimit) {
    this.#descriptors = descriptors;
  }

  get size(): number {
    return this.#flows.size;
  }

  /** Each has a descriptor, and the rest of the client needs some, too. Asked for with the first flow, not at every start. */
  get limit(): number {
    const share = FLOWS_DESCRIPTOR_SHARE;
    this.#limit ??= Math.min(CLIENT_LIMITS.FLOWS_MAX, Math.floor(this.#descriptors() * share));
    return this.#limit;
  }

  /** `idleMs`: what the edge goes by. It is the one who decides; here is only a net below it. */
  add(flow: SilentFlow, idleMs: number): void {
    this.#flows.set(flow, idleMs + FLOW_IDLE_GRACE_MS);
  }

  delete(flow: SilentFlow): void {
    this.#flows.delete(flow);
  }

  /** No new visitors come: whoever has said nothing for a moment is done. Datagrams have no end that could be waited for. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Every second, by the owner of the timer. */
  tick(now: number): void {
    const every = this.#isDraining ? 0 : FLOW_LOOK_EVERY_MS;
    if (this.#flows.size === 0 || now - this.#lookedAt < every) return;
    this.#lookedAt = now;
    for (const [flow, idleMs] of this.#flows) {
      const most = this.#isDraining ? FLOW_DRAIN_SILENCE_MS : idleMs;
      if (flow.silentFor(now) >= most) flow.end(SILENT);
    }
  }
}
