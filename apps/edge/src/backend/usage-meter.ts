// Turns counters that relay and ingress raise into records of usage: the difference to what was written last.
import type { Clock } from '@tunnel/runtime';
import type { UsageRecord } from './journal/journal-records.ts';
import type { TunnelCounters } from './tunnel-counters.ts';

export interface UsageMeterOptions {
  readonly clock: Clock;
  /** How long an ended tunnel is watched at least: a replay has no connection that would be counted. */
  readonly afterEndMs: number;
}

interface Metered {
  readonly tunnelId: string;
  readonly counters: TunnelCounters;
  /** As they were written last. */
  requests: number;
  bytes: number;
  readonly onChange: () => void;
}

export class UsageMeter {
  readonly #options: UsageMeterOptions;
  readonly #metered = new Map<string, Metered>();
  /** Those whose counters have changed since they were read: thousands of idle tunnels cost nothing. */
  readonly #changed = new Set<Metered>();
  /** When each ended, on the monotonic clock, the longest ended first. */
  readonly #endedAt = new Map<Metered, number>();

  constructor(options: UsageMeterOptions) {
    this.#options = options;
  }

  /** Tunnels that the next read looks at. */
  get changed(): number {
    return this.#changed.size;
  }

  watch(tunnelId: string, counters: TunnelCounters): void {
    if (this.#metered.has(tunnelId)) return;
    const onChange = (): void => void this.#changed.add(metered);
    const metered: Metered = { tunnelId, counters, requests: 0, bytes: 0, onChange };
    this.#metered.set(tunnelId, metered);
    // It may have counted before anyone looked.
    onChange();
  }

  /** Its connections may go on, and are counted until the last one is over. */
  ended(tunnelId: string): void {
    const metered = this.#metered.get(tunnelId);
    if (metered !== undefined && !this.#endedAt.has(metered)) {
      this.#endedAt.set(metered, this.#options.clock.monotonic());
    }
  }

  /** What has come since the last call. */
  read(): UsageRecord[] {
    const at = this.#options.clock.now();
    const records: UsageRecord[] = [];
    for (const metered of this.#changed) {
      const { tunnelId, counters } = metered;
      // One that may yet go to another member is not told of. If one that was is taken back, it is set off against the next.
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
