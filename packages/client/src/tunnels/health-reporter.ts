// The health of one client's tunnels: each service probed again and again, what has changed told to whoever must know.

import type { ControlMessageInput, HealthCheckSpec } from '@tunnel/protocol';
import { type HealthReport, ProbeStreak } from '@tunnel/rules/tunnels';
import type { Clock, Timer } from '@tunnel/runtime';
import { httpProbe, type Probe, tcpProbe } from '../local/probe.ts';
import type { TunnelEntry } from './tunnel.ts';
import type { TunnelEvent } from './tunnel-event.ts';
import { localAddress, probeRulesOf } from './tunnel-spec.ts';

export interface HealthReporterOptions {
  readonly clock: Clock;
  readonly random: () => number;
  readonly emit: (event: TunnelEvent) => void;
  /** To the edge, when it knows the tunnel now; else it is told with the next registration. */
  readonly tell: (tunnel: TunnelEntry, message: ControlMessageInput) => void;
}

/** Begins with a tunnel's first registration, and ends with the tunnel. */
export class HealthReporter {
  readonly #options: HealthReporterOptions;
  readonly #probers = new Map<TunnelEntry, Prober>();

  constructor(options: HealthReporterOptions) {
    this.#options = options;
  }

  /** The edge has answered: for the first time, or after a loss and without knowing what it was told before. */
  registered(tunnel: TunnelEntry): void {
    const known = this.#probers.get(tunnel)?.known;
    if (known === undefined) this.#begin(tunnel);
    else if (known !== null) this.#tell(tunnel, known);
  }

  /** It leads to another service, or is probed by other rules: what was known counts no more. */
  retargeted(tunnel: TunnelEntry): void {
    if (!this.#probers.has(tunnel)) return;
    this.ended(tunnel);
    this.#begin(tunnel);
  }

  ended(tunnel: TunnelEntry): void {
    this.#probers.get(tunnel)?.stop();
    this.#probers.delete(tunnel);
  }

  #begin(tunnel: TunnelEntry): void {
    const rules = probeRulesOf(tunnel.asked.health_check);
    const probe = rules === null ? null : this.#probeOf(tunnel, rules);
    if (rules === null || probe === null) return;
    const { clock, random } = this.#options;
    const prober = new Prober({
      probe,
      intervalMs: rules.interval_secs * 1000,
      maxFailed: rules.max_failed,
      clock,
      random,
      onChange: (report) => this.#changed(tunnel, report),
    });
    this.#probers.set(tunnel, prober);
    prober.start();
  }

  /** null: a folder, which the client serves itself. */
  #probeOf({ target, asked }: TunnelEntry, rules: HealthCheckSpec): Probe | null {
    if (target.kind === 'files') return null;
    const options = { target, timeoutMs: rules.timeout_secs * 1000, clock: this.#options.clock };
    if (rules.type === 'tcp') return tcpProbe(options);
    return httpProbe({
      ...options,
      path: rules.path ?? '/',
      localAddress: localAddress(asked),
      expect2xx: rules.expect_2xx,
    });
  }

  #changed(tunnel: TunnelEntry, report: HealthReport): void {
    tunnel.probed(report);
    this.#tell(tunnel, report);
    const { healthy } = report;
    const [reason, consecutiveFailures] = report.healthy ? ['', 0] : [report.reason, report.consecutiveFailures];
    this.#options.emit({ type: 'health', tunnel, healthy, reason, consecutiveFailures });
  }

  #tell(tunnel: TunnelEntry, report: HealthReport): void {
    const { tunnelId: tunnel_id } = tunnel;
    if (report.healthy) return this.#options.tell(tunnel, { type: 'TunnelHealthy', tunnel_id });
    const { reason, consecutiveFailures: consecutive_failures } = report;
    this.#options.tell(tunnel, { type: 'TunnelUnhealthy', tunnel_id, reason, consecutive_failures });
  }
}

export interface ProberOptions {
  readonly probe: Probe;
  readonly intervalMs: number;
  readonly maxFailed: number;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly onChange: (report: HealthReport) => void;
}

/** Of the interval, to either side: clients that began together must not go on together. */
const JITTER = 0.1;

/** Probes one service again and again, never twice at once, and says when its health has changed. */
export class Prober {
  readonly #options: ProberOptions;
  readonly #streak: ProbeStreak;
  readonly #stop = new AbortController();
  #timer: Timer | null = null;
  #hasBegun = false;

  constructor(options: ProberOptions) {
    this.#options = options;
    this.#streak = new ProbeStreak(options);
  }

  /** What is known so far, for an edge that has not heard it; null: nothing yet. */
  get known(): HealthReport | null {
    return this.#streak.toldAnew();
  }

  /** The first probe begins at once. */
  start(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    void this.#look();
  }

  stop(): void {
    this.#stop.abort();
    this.#timer?.cancel();
  }

  async #look(): Promise<void> {
    const { probe, clock, onChange } = this.#options;
    const { signal } = this.#stop;
    const nextAt = clock.monotonic() + this.#pauseMs();
    const result = await probe(signal);
    if (signal.aborted) return;
    const report = result.ok ? this.#streak.succeeded() : this.#streak.failed(result.reason);
    // Counted from the beginning of the last one; one that took longer is followed at once.
    this.#timer = clock.setTimeout(() => void this.#look(), Math.max(0, nextAt - clock.monotonic()));
    if (report !== null) onChange(report);
  }

  #pauseMs(): number {
    const { intervalMs, random } = this.#options;
    return intervalMs * (1 + JITTER * (2 * random() - 1));
  }
}
