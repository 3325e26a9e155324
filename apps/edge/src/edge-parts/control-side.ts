// Where clients come in: the control plane, made at the start, when the certificate is known.
import type { Fault } from '@tunnel/errors';
import type { ServerConfig } from '@tunnel/runtime';
import type { Backend } from '../backend/backend.ts';
import type { AuthFailures } from '../control/auth-failures.ts';
import { ControlPlane } from '../control/control-plane.ts';
import type { GroupWatch } from '../group-watch.ts';
import type { TlsFiles } from '../ingress/tls/tls-files.ts';
import { EndpointRegistry, PortRegistry } from '../routing/endpoints.ts';
import { Groups } from '../routing/groups.ts';
import type { EdgeDeps } from './edge-deps.ts';
import type { PublicSide } from './public-side.ts';

export interface ControlSideParts {
  readonly backend: Backend;
  readonly failures: AuthFailures;
  readonly publicSide: PublicSide;
  readonly watch: GroupWatch;
}

const NO_FIGURES = { sessions: 0, carriers: 0, streams: 0 };

export class ControlSide {
  readonly #config: ServerConfig;
  readonly #deps: EdgeDeps;
  readonly #parts: ControlSideParts;
  #plane: ControlPlane | undefined;

  constructor(config: ServerConfig, deps: EdgeDeps, parts: ControlSideParts) {
    this.#config = config;
    this.#deps = deps;
    this.#parts = parts;
  }

  get address(): { readonly host: string; readonly port: number } {
    if (this.#plane === undefined) throw new Error('the edge is not running');
    return this.#plane.address;
  }

  get figures(): ControlPlane['figures'] {
    return this.#plane?.figures ?? NO_FIGURES;
  }

  get isDraining(): boolean {
    return this.#plane?.isDraining ?? false;
  }

  closeTunnel(tunnelId: string, fault: Fault): boolean {
    return this.#plane?.closeTunnel(tunnelId, fault) ?? false;
  }

  renewCertificate(files: TlsFiles): void {
    this.#plane?.renewCertificate(files);
  }

  async open(tls: TlsFiles | null): Promise<void> {
    const { clock, logger, random = Math.random } = this.#deps;
    const { server, limits, region, load_balancing } = this.#config;
    const { backend, failures, publicSide, watch } = this.#parts;
    const { listeners, names, tunnels, ports } = publicSide;
    const [from, to] = limits.tcp_port_range;
    const endpoints = new EndpointRegistry(new PortRegistry({ range: { from, to }, listeners, clock, random }), names);
    const plane = new ControlPlane({
      host: server.host,
      port: server.control_port,
      tls,
      domain: server.domain,
      regionId: region.id,
      tunnelsPerSession: limits.tunnels_per_session,
      trustedProxies: server.trusted_proxies,
      clock,
      logger,
      backend,
      failures,
      publicHttp: ports.publicHttp,
      endpoints,
      groups: new Groups({ clock, logger, endpoints, tunnels, watchers: watch.watchers }),
      tunnels,
      loadBalancing: load_balancing.enabled,
      checkAlertUrl: watch.checkAlertUrl,
    });
    await plane.start();
    this.#plane = plane;
  }

  drain(drainMs: number): void {
    this.#plane?.drain(drainMs / 1000);
  }

  async end(): Promise<void> {
    await this.#plane?.end();
  }

  cut(): void {
    this.#plane?.cut();
  }
}
