// The captured requests of all tunnels, in memory: bounded in number and bytes, kept for an hour after a tunnel's end.
import type { ChunkedForm, Owner, RequestHead } from '@tunnel/core';
import type { Clock, Timer } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';
import type { TunnelWatcher } from '../routing/registry.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import { CaptureLog, type CaptureLogOwner } from './capture-log.ts';
import { CaptureRecorder } from './recorder.ts';

export interface CaptureStoreOptions {
  /** [capture] of server.toml. */
  readonly enabled: boolean;
  readonly bodies: boolean;
  readonly clock: Clock;
  /** Makes the ids of this run differ from those of the last one. */
  readonly runId: string;
}

export interface CaptureList {
  /** Newest first. */
  readonly recorders: readonly CaptureRecorder[];
  /** There were older ones than these. */
  readonly truncated: boolean;
}

/** An ended tunnel of which nothing is kept but whose it was. */
interface Remembered {
  readonly owner: Owner;
  readonly isTruncated: boolean;
}

export class CaptureStore implements CaptureLogOwner, TunnelWatcher {
  readonly #options: CaptureStoreOptions;
  /** Of tunnels with at least one request. */
  readonly #logs = new Map<string, CaptureLog>();
  readonly #remembered = new Map<string, Remembered>();
  #bytes = 0;
  #sequence = 0;
  #hand: Iterator<CaptureLog> | null = null;
  #sweeping: Timer | null = null;

  constructor(options: CaptureStoreOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * A request begins to be served by the tunnel. `startedMs` is monotonic; a chunked body of it will pass by in `bodyForm`.
   * null: captures are off, for this tunnel or for all.
   */
  begin(
    tunnel: Tunnel,
    head: Pick<RequestHead, 'text' | 'framing'>,
    startedMs: number,
    bodyForm: ChunkedForm,
    replayOf: CaptureRecorder | null = null,
  ): CaptureRecorder | null {
    const { enabled, bodies, clock } = this.#options;
    if (!enabled || tunnel.http?.capture !== true) return null;
    const log = this.#logs.get(tunnel.tunnelId) ?? this.#addLog(tunnel);
    this.#sequence += 1;
    const facts = {
      sequence: this.#sequence,
      at: clock.now(),
      startedMs,
      bodyForm,
      keepsBodies: bodies,
      replayOf: replayOf?.facts.sequence ?? null,
    };
    const recorder = new CaptureRecorder(facts, head, log);
    log.add(recorder);
    return recorder;
  }

  #addLog({ tunnelId, owner }: Tunnel): CaptureLog {
    const log = new CaptureLog(tunnelId, owner, this);
    // The last words of a tunnel that has just ended.
    if (this.#remembered.delete(tunnelId)) log.endedMs = this.#options.clock.monotonic();
    this.#logs.set(tunnelId, log);
    return log;
  }

  // ---- the life of tunnels ----

  tunnelAdded({ tunnelId }: Tunnel): void {
    this.#remembered.delete(tunnelId);
    const log = this.#logs.get(tunnelId);
    if (log !== undefined) log.endedMs = null;
  }

  tunnelRemoved({ tunnelId, owner, http }: Tunnel): void {
    if (http === null) return;
    const log = this.#logs.get(tunnelId);
    if (log === undefined) this.#remember(tunnelId, { owner, isTruncated: false });
    else log.endedMs = this.#options.clock.monotonic();
  }

  start(): void {
    this.#sweeping = this.#options.clock.setInterval(() => this.#sweep(), EDGE_LIMITS.CAPTURE_SWEEP_MS);
  }

  stop(): void {
    this.#sweeping?.cancel();
  }

  #sweep(): void {
    const dueMs = this.#options.clock.monotonic() - EDGE_LIMITS.CAPTURE_KEPT_AFTER_END_MS;
    for (const log of this.#logs.values()) {
      if (log.endedMs !== null && log.endedMs <= dueMs) log.dropOldest(log.size);
    }
  }

  #remember(tunnelId: string, entry: Remembered): void {
    this.#remembered.delete(tunnelId);
    this.#remembered.set(tunnelId, entry);
    if (this.#remembered.size <= EDGE_LIMITS.CAPTURE_TUNNELS_REMEMBERED) return;
    for (const oldest of this.#remembered.keys()) {
      this.#remembered.delete(oldest);
      return;
    }
  }

  // ---- what readers see ----

  /** Of a tunnel with captures, or of one that has ended; a living one without any is known to the tunnel table only. */
  ownerOf(tunnelId: string): Owner | undefined {
    return (this.#logs.get(tunnelId) ?? this.#remembered.get(tunnelId))?.owner;
  }

  list(tunnelId: string, limit: number): CaptureList {
    const log = this.#logs.get(tunnelId);
    if (log === undefined) {
      return { recorders: [], truncated: this.#remembered.get(tunnelId)?.isTruncated ?? false };
    }
    return { recorders: log.newest(limit), truncated: log.isTruncated || log.size > limit };
  }

  find(tunnelId: string, requestId: string): CaptureRecorder | undefined {
    return this.#logs.get(tunnelId)?.find(({ facts }) => this.idOf(facts.sequence) === requestId);
  }

  idOf(sequence: number): string {
    return `req_${this.#options.runId}${sequence.toString(36).padStart(6, '0')}`;
  }

  // ---- room ----

  onChanged(log: CaptureLog, bytes: number): void {
    this.#bytes += bytes;
    if (bytes > 0) this.#makeRoom(log);
    else if (log.size === 0) this.#dropLog(log);
  }

  #makeRoom(writer: CaptureLog): void {
    while (this.#bytes > EDGE_LIMITS.CAPTURE_BYTES_MAX && this.#logs.size > 0) {
      // Whoever has more than an even share makes room itself, so that a busy tunnel does not push out the quiet ones.
      const isGreedy = writer.bytes > EDGE_LIMITS.CAPTURE_BYTES_MAX / this.#logs.size;
      if (isGreedy) writer.dropOldest(1);
      else this.#dropHalfOfNext();
    }
  }

  /** Goes around: nobody is looked at twice before all the others were, and no step searches. */
  #dropHalfOfNext(): void {
    let next = this.#hand?.next();
    if (next === undefined || next.done === true) {
      this.#hand = this.#logs.values();
      next = this.#hand.next();
    }
    if (next.done !== true) next.value.dropOldest(Math.ceil(next.value.size / 2));
  }

  #dropLog(log: CaptureLog): void {
    const { tunnelId, owner, endedMs, isTruncated } = log;
    if (this.#logs.get(tunnelId) !== log) return;
    this.#logs.delete(tunnelId);
    if (endedMs !== null) this.#remember(tunnelId, { owner, isTruncated });
  }
}
