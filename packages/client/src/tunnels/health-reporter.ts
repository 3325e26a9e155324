// Health checks of one client's tunnels: probes every local service periodically and reports changes to the edge and to status listeners.

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
  /** Sends a report to the edge if the edge knows the tunnel; otherwise the report follows with the next registration. */
  readonly tell: (tunnel: TunnelEntry, message: ControlMessageInput) => void;
}

/** Probes local services, from the first registration of a tunnel until its end. */
export class HealthReporter {
  readonly #options: HealthReporterOptions;
  readonly #probers = new Map<TunnelEntry, Prober>();

  constructor(options: HealthReporterOptions) {
    this.#options = options;
  }

  /**
   * Called when the edge has registered the tunnel. After a reconnect the edge has forgotten earlier reports, so the known health is sent
   * again.
   */
  registered(tunnel: TunnelEntry): void {
    const known = this.#probers.get(tunnel)?.known;
    if (known === undefined) this.#begin(tunnel);
    else if (known !== null) this.#tell(tunnel, known);
  }

  /** Restarts the probes after a change of the target or of the check's settings. Earlier results are discarded. */
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

  /** Returns the probe, or null for a folder of files, which the client serves without a local service. */
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
  /** Random number in [0, 1) for the times of health checks. */
  readonly random: () => number;
  readonly onChange: (report: HealthReport) => void;
}

/** Jitter as a share of the interval, in both directions, so that clients started together do not probe in lockstep. */
const JITTER = 0.1;

/** Probes one service periodically, with at most one probe at a time, and reports changes of its health. */
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

  /** The known health, to be sent to an edge without earlier reports. Null before the first result. */
  get known(): HealthReport | null {
    return this.#streak.toldAnew();
  }

  /** Starts the health checks of the local service. The first runs immediately. */
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
    // The interval counts from the start of the last probe. After a probe longer than the interval the next probe starts immediately.
    this.#timer = clock.setTimeout(() => void this.#look(), Math.max(0, nextAt - clock.monotonic()));
    if (report !== null) onChange(report);
  }

  #pauseMs(): number {
    const { intervalMs, random } = this.#options;
    return intervalMs * (1 + JITTER * (2 * random() - 1));
  }
}
