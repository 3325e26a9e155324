import { RULE_LIMITS } from '../limits.ts';
// Health of a tunnel's local service: the client evaluates probes, and the edge keeps the reported state.

// Client side: takes probe results and returns changes to report to the edge.

/** Report to the edge. A failing service is reported with the number of consecutive failures and the last reason. */
export type HealthReport =
  | { readonly healthy: true }
  | { readonly healthy: false; readonly reason: string; readonly consecutiveFailures: number };

/** Health of a local service according to its probes. `unknown`: no result to report yet. */
export type ProbedHealth = 'unknown' | 'healthy' | 'unhealthy';

const HEALTHY: HealthReport = { healthy: true };

export class ProbeStreak {
  readonly #maxFailed: number;
  #reported: ProbedHealth = 'unknown';
  /** Number of failed probes since the last success. */
  #failures = 0;
  #lastReason = '';

  /** `maxFailed`: consecutive failed probes that make a service unhealthy. */
  constructor({ maxFailed }: { readonly maxFailed: number }) {
    this.#maxFailed = maxFailed;
  }

  get health(): ProbedHealth {
    return this.#reported;
  }

  /** Records a successful probe. Returns null if the service's health did not change, otherwise the report for the edge. */
  succeeded(): HealthReport | null {
    this.#failures = 0;
    if (this.#reported === 'healthy') return null;
    this.#reported = 'healthy';
    return HEALTHY;
  }

  /** Records a failed probe. Returns null if the service's health did not change, otherwise the report for the edge. */
  failed(reason: string): HealthReport | null {
    this.#failures += 1;
    this.#lastReason = reason;
    if (this.#reported === 'unhealthy' || this.#failures < this.#maxFailed) return null;
    this.#reported = 'unhealthy';
    return this.#unhealthy();
  }

  /** Returns the current state for an edge without earlier reports, or null if unknown. */
  toldAnew(): HealthReport | null {
    if (this.#reported === 'unknown') return null;
    return this.#reported === 'healthy' ? HEALTHY : this.#unhealthy();
  }

  #unhealthy(): HealthReport {
    return { healthy: false, reason: this.#lastReason, consecutiveFailures: this.#failures };
  }
}

// Edge side: the current state, the failures counted by the client, and the last transitions.

/** How a client probes its local service. */
export type ProbeKind = 'tcp' | 'http';

export interface HealthEvent {
  /** Time of the health change as Unix time in milliseconds. */
  readonly at: number;
  readonly healthy: boolean;
  readonly reason: string;
}

interface UnhealthyReport {
  readonly reason: string;
  /** Number of consecutive failed probes counted by the client. */
  readonly consecutiveFailures: number;
}

/** Empty health history, shared by tunnels without a health change, as most are. */
const NO_EVENTS: readonly HealthEvent[] = [];

export class MemberHealth {
  /** Kind of the tunnel's health probe. Null for a tunnel without probe, which is always healthy. */
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

  /** Total number of unhealthy reports from the client for this tunnel. */
  get totalFailures(): number {
    return this.#totalFailures;
  }

  /** Reason of the last unhealthy report, kept after recovery. Null if there was no such report. */
  get lastFailureReason(): string | null {
    return this.#lastFailureReason;
  }

  /** Health transitions of the tunnel, oldest first. */
  get history(): readonly HealthEvent[] {
    return this.#history;
  }

  /** Records that the client reported its service as healthy. Returns true if the tunnel's health changed. */
  reportHealthy(at: number): boolean {
    this.#consecutiveFailures = 0;
    return this.#change(true, 'the probe succeeded', at);
  }

  /** Returns true if the health changed. The report is counted in any case. */
  reportUnhealthy({ reason, consecutiveFailures }: UnhealthyReport, at: number): boolean {
    this.#consecutiveFailures = consecutiveFailures;
    this.#totalFailures += 1;
    this.#lastFailureReason = reason;
    return this.kind !== null && this.#change(false, reason, at);
  }

  /** Called when the client has reconnected: its earlier reports no longer apply. */
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
