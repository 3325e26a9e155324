// The probes of one client's tunnels: begun with the first registration, told to whoever must know, ended with the tunnel.
import type { HealthReport } from '@tunnel/core';
import type { ControlMessageInput, HealthCheckSpec } from '@tunnel/protocol';
import type { Clock } from '@tunnel/runtime';
import { probeRulesOf } from '../health-check.ts';
import type { StatusEvent } from '../status.ts';
import type { KeptTunnel } from '../tunnel.ts';
import { localAddress } from '../tunnel-spec.ts';
import { httpProbe } from './http-probe.ts';
import type { Probe } from './probe.ts';
import { Prober } from './prober.ts';
import { tcpProbe } from './tcp-probe.ts';

export interface HealthDeskDeps {
  readonly clock: Clock;
  readonly random: () => number;
  readonly emit: (event: StatusEvent) => void;
  /** To the edge, when it knows the tunnel now; else it is told with the next registration. */
  readonly tell: (tunnel: KeptTunnel, message: ControlMessageInput) => void;
}

export class HealthDesk {
  readonly #deps: HealthDeskDeps;
  readonly #probers = new Map<KeptTunnel, Prober>();

  constructor(deps: HealthDeskDeps) {
    this.#deps = deps;
  }

  /** The edge has answered: for the first time, or after a loss and without knowing what it was told before. */
  registered(tunnel: KeptTunnel): void {
    const known = this.#probers.get(tunnel)?.known;
    if (known === undefined) this.#begin(tunnel);
    else if (known !== null) this.#tell(tunnel, known);
  }

  ended(tunnel: KeptTunnel): void {
    this.#probers.get(tunnel)?.stop();
    this.#probers.delete(tunnel);
  }

  #begin(tunnel: KeptTunnel): void {
    const rules = probeRulesOf(tunnel.spec.healthCheck);
    if (rules === null) return;
    const { clock, random } = this.#deps;
    const prober = new Prober({
      probe: this.#probeOf(tunnel, rules),
      intervalMs: rules.interval_secs * 1000,
      maxFailed: rules.max_failed,
      clock,
      random,
      onChange: (report) => this.#changed(tunnel, report),
    });
    this.#probers.set(tunnel, prober);
    prober.start();
  }

  #probeOf({ target, protocol, localHost, localPort }: KeptTunnel, rules: HealthCheckSpec): Probe {
    const options = { target, timeoutMs: rules.timeout_secs * 1000, clock: this.#deps.clock };
    if (rules.type === 'tcp') return tcpProbe(options);
    return httpProbe({
      ...options,
      path: rules.path ?? '/',
      localAddress: localAddress(protocol, localHost, localPort),
      expect2xx: rules.expect_2xx,
    });
  }

  #changed(tunnel: KeptTunnel, report: HealthReport): void {
    tunnel.probed(report);
    this.#tell(tunnel, report);
    const { healthy } = report;
    const [reason, consecutiveFailures] = report.healthy ? ['', 0] : [report.reason, report.consecutiveFailures];
    this.#deps.emit({ type: 'health', tunnel, healthy, reason, consecutiveFailures });
  }

  #tell(tunnel: KeptTunnel, report: HealthReport): void {
    const { tunnelId: tunnel_id } = tunnel;
    if (report.healthy) return this.#deps.tell(tunnel, { type: 'TunnelHealthy', tunnel_id });
    const { reason, consecutiveFailures: consecutive_failures } = report;
    this.#deps.tell(tunnel, { type: 'TunnelUnhealthy', tunnel_id, reason, consecutive_failures });
  }
}
