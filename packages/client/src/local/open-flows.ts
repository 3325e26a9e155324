// The UDP flows of one client: limits their number and ends idle flows. All flows are checked together every few seconds, without timers
// per flow.
import { type StreamReason, WIRE_LIMITS } from '@tunnel/protocol';
import { descriptorLimit } from '@tunnel/runtime';
import { CLIENT_LIMITS } from '../limits.ts';

/** Maximum share of the process's file descriptors for UDP flows. */
const FLOWS_DESCRIPTOR_SHARE = 0.75;
/** Extra idle time before the client ends a flow that the edge should have ended. */
export const FLOW_IDLE_GRACE_MS = 30_000;
/** Interval of the check for idle UDP flows. */
export const FLOW_LOOK_EVERY_MS = 5000;
/** Silence after which a closing client no longer waits for a UDP flow. */
export const FLOW_DRAIN_SILENCE_MS = 2000;

/** The parts of a UDP flow that the idle check needs. */
export interface SilentFlow {
  silentFor(now: number): number;
  end(reason: StreamReason): void;
}

const SILENT: StreamReason = { code: 'timeout', text: 'idle for too long' };

/**
 * Send buffer shared by the flows of a client. A stream's bytes are only borrowed, and a socket with a full kernel buffer keeps the memory
 * passed to it. Almost always the kernel takes a datagram immediately, and the buffer can be reused.
 */
export class SendMemory {
  #free: Buffer | null = null;

  take(): Buffer {
    this.#free ??= Buffer.allocUnsafeSlow(WIRE_LIMITS.DATAGRAM_MAX_BYTES);
    return this.#free;
  }

  /** Gives up the buffer of the last take(), because a socket keeps it. */
  leave(): void {
    this.#free = null;
  }
}

export class OpenFlows {
  readonly memory = new SendMemory();
  /** Open UDP flows with their maximum idle time. */
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

  /**
   * Maximum number of flows. Every flow needs a file descriptor, and the rest of the client needs some too. Determined with the first flow,
   * not at every start.
   */
  get limit(): number {
    const share = FLOWS_DESCRIPTOR_SHARE;
    this.#limit ??= Math.min(CLIENT_LIMITS.FLOWS_MAX, Math.floor(this.#descriptors() * share));
    return this.#limit;
  }

  /** Adds a flow. `idleMs` is the edge's idle timeout. The edge normally ends idle flows; the client's check is a fallback. */
  add(flow: SilentFlow, idleMs: number): void {
    this.#flows.set(flow, idleMs + FLOW_IDLE_GRACE_MS);
  }

  delete(flow: SilentFlow): void {
    this.#flows.delete(flow);
  }

  /** Ends every flow after a short silence, because no new visitors arrive and datagrams have no end marker. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Ends idle UDP flows. Called every second by the owner of the timer. */
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
