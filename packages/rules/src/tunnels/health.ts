import { RULE_LIMITS } from '../limits.ts';
// The health of one tunnel's service: what the client makes of its probes, and what the edge knows from the reports.

// The client's side: results of probes go in, out comes what the edge must be told. Only changes are told.

/** What the edge is told; of a failing service also how often in a row, and why the last time. */
export type HealthReport =
  | { readonly healthy: true }
  | { readonly healthy: false; readonly reason: string; readonly consecutiveFailures: number };

/** `unknown`: nothing could be reported yet. */
export type ProbedHealth = 'unknown' | 'healthy' | 'unhealthy';

const HEALTHY: HealthReport = { healthy: true };

export class ProbeStreak {
  readonly #maxFailed: number;
  #reported: ProbedHealth = 'unknown';
  /** Since the last success, whatever was reported. */
  #failures = 0;
  #lastReason = '';

  /** `maxFailed`: failures in a row that make a service unhealthy. */
  constructor({ maxFailed }: { readonly maxFailed: number }) {
    this.#maxFailed = maxFailed;
  }

  get health(): ProbedHealth {
    return this.#reported;
  }

  /** null: nothing new. */
  succeeded(): HealthReport | null {
    this.#failures = 0;
    if (this.#reported === 'healthy') return null;
    this.#reported = 'healthy';
    return HEALTHY;
  }

  /** null: nothing new. */
  failed(reason: string): HealthReport | null {
    this.#failures += 1;
    this.#lastReason = reason;
    if (this.#reported === 'unhealthy' || this.#failures < this.#maxFailed) return null;
    this.#reported = 'unhealthy';
    return this.#unhealthy();
  }

  /** For an edge that knows nothing of earlier reports; null: there is nothing to report yet. */
  toldAnew(): HealthReport | null {
    if (this.#reported === 'unknown') return null;
    return this.#reported === 'healthy' ? HEALTHY : this.#unhealthy();
  }

  #unhealthy(): HealthReport {
    return { healthy: false, reason: this.#lastReason, consecutiveFailures: this.#failures };
  }
}

// The edge's side: the bit, the failures its client counted, and the last transitions.

/** How a client looks at its local service. */
export type ProbeKind = 'tcp' | 'http';

export interface HealthEvent {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly healthy: boolean;
  readonly reason: string;
}

interface UnhealthyReport {
  readonly reason: string;
  /** The client's count. */
  readonly consecutiveFailures: number;
}

/** Most tunnels never change: they share this. */
const NO_EVENTS: readonly HealthEvent[] = [];

export class MemberHealth {
  /** null: it has no probe, and is healthy for ever. */
  readonly kind: ProbeKind | null;
  #healthy: boolean;
  #consecutiveFailures = 0;
  #totalFailures = 0;
  #lastFailureReason: string | null = null;
  #history: readonly HealthEvent[] = NO_EVENTS;

  constructor(kind: ProbeKind | null) {
    this.kind = kind;
    this.#healthy = kind === null;
  }

  get healthy(): boolean {
    return this.#healthy;
  }

  get consecutiveFailures(): number {
    return this.#consecutiveFailures;
  }

  /** Reports of the client that it is down. */
  get totalFailures(): number {
    return this.#totalFailures;
  }

  /** What the last of them said, also once it is healthy again; null: there was none. */
  get lastFailureReason(): string | null {
    return this.#lastFailureReason;
  }

  /** Oldest first; transitions only. */
  get history(): readonly HealthEvent[] {
    return this.#history;
  }

  /** true: the bit changed. */
  reportHealthy(at: number): boolean {
    this.#consecutiveFailures = 0;
    return this.#change(true, 'the probe succeeded', at);
  }

  /** true: the bit changed. Counted in any case. */
  reportUnhealthy({ reason, consecutiveFailures }: UnhealthyReport, at: number): boolean {
    this.#consecutiveFailures = consecutiveFailures;
    this.#totalFailures += 1;
    this.#lastFailureReason = reason;
    return this.kind !== null && this.#change(false, reason, at);
  }

  /** The client was away and has come back: what it reported before says nothing about now. */
  returned(at: number): void {
    this.#consecutiveFailures = 0;
    if (this.kind !== null) this.#change(false, 'the client was disconnected', at);
  }

  #change(healthy: boolean, reason: string, at: number): boolean {
    if (this.#healthy === healthy) return false;
    this.#healthy = healthy;
    this.#history = [...this.#history.slice(-(RULE_LIMITS.HEALTH_HISTORY_MAX - 1)), { at, healthy, reason }];
    return true;
  }
}
