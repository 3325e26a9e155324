// What the edge knows of one tunnel's health: the bit, the failures its client counted, and the last transitions.

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

export const HEALTH_HISTORY_MAX = 50;

/** Most tunnels never change: they share this. */
const NO_EVENTS: readonly HealthEvent[] = [];

export class MemberHealth {
  /** null: it has no probe, and is healthy for ever. */
  readonly kind: ProbeKind | null;
  #healthy: boolean;
  #consecutiveFailures = 0;
  #totalFailures = 0;
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
    return this.kind !== null && this.#change(false, reason, at);
  }

  /** The client was away and has come back: what it reported before says nothing about now. */
  returned(at: number): void {
    this.#consecutiveFailures = 0;
    if (this.kind !== null) this.#change(false, 'the client was away', at);
  }

  #change(healthy: boolean, reason: string, at: number): boolean {
    if (this.#healthy === healthy) return false;
    this.#healthy = healthy;
    this.#history = [...this.#history.slice(-(HEALTH_HISTORY_MAX - 1)), { at, healthy, reason }];
    return true;
  }
}
