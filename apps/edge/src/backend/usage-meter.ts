// Converts the counters of tunnels into usage records, each with the difference since the previous record.
import type { Clock } from '@tunnel/runtime';
import type { UsageRecord } from './journal/journal-records.ts';
import type { TunnelCounters } from './tunnel-counters.ts';

export interface UsageMeterOptions {
  readonly clock: Clock;
  /** Minimum time in milliseconds for which a closed tunnel is watched. Needed for replays, which have no counted connection. */
  readonly afterEndMs: number;
}

interface Metered {
  readonly tunnelId: string;
  readonly counters: TunnelCounters;
  /** Counter values that were already included in usage records. */
  requests: number;
  bytes: number;
  readonly onChange: () => void;
}

export class UsageMeter {
  readonly #options: UsageMeterOptions;
  readonly #metered = new Map<string, Metered>();
  /** Tunnels with changed counters since the last read, so that thousands of idle tunnels cost nothing. */
  readonly #changed = new Set<Metered>();
  /** Time at which each closed tunnel was closed, on the monotonic clock, longest closed first. */
  readonly #endedAt = new Map<Metered, number>();

  constructor(options: UsageMeterOptions) {
    this.#options = options;
  }

  /** Number of tunnels with changed counters, which the next read covers. */
  get changed(): number {
    return this.#changed.size;
  }

  watch(tunnelId: string, counters: TunnelCounters): void {
    if (this.#metered.has(tunnelId)) return;
    const onChange = (): void => void this.#changed.add(metered);
    const metered: Metered = { tunnelId, counters, requests: 0, bytes: 0, onChange };
    this.#metered.set(tunnelId, metered);
    // The counters may have changed before the tunnel was watched.
    onChange();
  }

  /** Marks a tunnel as closed. Its open connections continue and are metered until the last connection has closed. */
  ended(tunnelId: string): void {
    const metered = this.#metered.get(tunnelId);
    if (metered !== undefined && !this.#endedAt.has(metered)) {
      this.#endedAt.set(metered, this.#options.clock.monotonic());
    }
  }

  /** Returns usage records for all traffic since the last call. */
  read(): UsageRecord[] {
    const at = this.#options.clock.now();
    const records: UsageRecord[] = [];
    for (const metered of this.#changed) {
      const { tunnelId, counters } = metered;
      // A request that may still move to another group member is not reported yet. If a reported request is taken back, the next records
      // are reduced by the difference.
      const requests = Math.max(0, counters.requests - counters.pendingFailover - metered.requests);
      const bytes = Math.max(0, counters.bytes - metered.bytes);
      counters.onNextChange(metered.onChange);
      if (requests === 0 && bytes === 0) continue;
      metered.requests += requests;
      metered.bytes += bytes;
      records.push({ kind: 'usage', tunnel_id: tunnelId, requests, bytes, at });
    }
    this.#changed.clear();
    this.#forgetEnded();
    return records;
  }

  #forgetEnded(): void {
    if (this.#endedAt.size === 0) return;
    const { clock, afterEndMs } = this.#options;
    const dueAt = clock.monotonic() - afterEndMs;
    for (const [metered, endedAt] of this.#endedAt) {
      if (endedAt > dueAt) return;
      const { tunnelId, counters } = metered;
      if (counters.openConnections > 0) continue;
      counters.onNextChange(null);
      this.#endedAt.delete(metered);
      this.#metered.delete(tunnelId);
    }
  }
}
