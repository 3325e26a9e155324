// Turns counters that relay and ingress raise into records of usage: the difference to what was written last.
import type { Clock } from '@tunnel/runtime';
import type { TunnelCounters } from '../upstream/upstream-request.ts';
import type { UsageRecord } from './journal/pending-records.ts';

export interface UsageMeterOptions {
  readonly clock: Clock;
  /** How long an ended tunnel is watched at least: a replay has no connection that would be counted. */
  readonly afterEndMs: number;
}

interface Metered {
  readonly counters: TunnelCounters;
  requests: number;
  bytes: number;
  /** On the monotonic clock; null: it lives. */
  endedAt: number | null;
}

export class UsageMeter {
  readonly #given: UsageMeterOptions;
  readonly #metered = new Map<string, Metered>();

  constructor(options: UsageMeterOptions) {
    this.#given = options;
  }

  /** Tunnels that are looked at. */
  get size(): number {
    return this.#metered.size;
  }

  watch(tunnelId: string, counters: TunnelCounters): void {
    if (!this.#metered.has(tunnelId)) this.#metered.set(tunnelId, { counters, requests: 0, bytes: 0, endedAt: null });
  }

  /** Its connections may go on, and are counted until the last one is over. */
  ended(tunnelId: string): void {
    const metered = this.#metered.get(tunnelId);
    if (metered !== undefined) metered.endedAt ??= this.#given.clock.monotonic();
  }

  /** What has come since the last call. */
  read(): UsageRecord[] {
    const { clock } = this.#given;
    const at = clock.now();
    const records: UsageRecord[] = [];
    for (const [tunnelId, metered] of this.#metered) {
      const { counters } = metered;
      // One that may yet go to another member is not told of. If one that was is taken back, it is set off against the next.
      const requests = Math.max(0, counters.requests - counters.pendingFailover - metered.requests);
      const bytes = Math.max(0, counters.bytes - metered.bytes);
      if (requests > 0 || bytes > 0) {
        metered.requests += requests;
        metered.bytes += bytes;
        records.push({ kind: 'usage', tunnel_id: tunnelId, requests, bytes, at });
      }
      if (metered.endedAt !== null && this.#isOver(metered, metered.endedAt)) this.#metered.delete(tunnelId);
    }
    return records;
  }

  #isOver({ counters }: Metered, endedAt: number): boolean {
    const { clock, afterEndMs } = this.#given;
    return counters.openConnections <= 0 && clock.monotonic() - endedAt >= afterEndMs;
  }
}
