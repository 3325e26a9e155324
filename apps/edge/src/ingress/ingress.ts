// All entry points for visitors: ports of tcp and udp tunnels, the shared HTTP ports, and relayed streams of peers. Opened, drained and
// closed together.

import type { ServerConfig } from '@tunnel/config/server';
import type { ConnectionGate } from '@tunnel/http-shell';
import type { ReportInternalError } from '@tunnel/mux';
import type { Clock, Logger, Tracer } from '@tunnel/runtime';
import type { EdgeCertificates } from '../backend/certificates/edge-certificates.ts';
import type { ReservedNames } from '../backend/names/reserved-names.ts';
import type { HeldBodies } from '../policy/held-bodies.ts';
import type { PolicyGate } from '../policy/policy-gate.ts';
import type { Balancer } from '../routing/balancer.ts';
import type { NameRegistry } from '../routing/endpoints.ts';
import { HttpRouter, type HttpRouterOptions } from '../routing/http-router.ts';
import type { PlatformRoute } from '../routing/platform-route.ts';
import type { Registry } from '../routing/registry.ts';
import { ChallengeRouter } from './http/challenge-router.ts';
import { type CaptureSink, HttpIngress, type HttpIngressOptions } from './http/http-ingress.ts';
import { HttpListeners } from './http/http-listeners.ts';
import type { ClientIngress } from './http/visitor.ts';
import {
  makePortIngresses,
  makeRelay,
  type PortIngresses,
  type PortIngressParts,
  type PublicAddress,
} from './kinds.ts';
import { PeerJoins, type PeerJoinsOptions } from './p2p/peer-joins.ts';
import { PeerRelays } from './p2p/peer-relays.ts';
import { TlsPassthrough } from './tcp/tls-passthrough.ts';
import type { CertificateStore } from './tls/certificate-store.ts';
import { ChallengeHandshakes } from './tls/challenge-handshakes.ts';

export interface IngressOptions {
  readonly server: ServerConfig['server'];
  readonly tunnels: Registry;
  readonly names: NameRegistry;
  readonly reserved: ReservedNames;
  readonly balancer: Balancer;
  readonly flowBalancer: Balancer;
  readonly config: PortIngressParts['config'] & Pick<ServerConfig, 'p2p'>;
  /** Notifies clients of changes in p2p tunnels: subscribers that joined or left. */
  readonly tell: PeerJoinsOptions['tell'];
  /** Notifies clients of requests answered by the edge. */
  readonly offer: HttpIngressOptions['offer'];
  readonly udpFlowsMax?: number | undefined;
  readonly pathPorts: () => readonly number[];
  readonly gate: ConnectionGate;
  readonly certificates: CertificateStore;
  /** Automatically issued certificates. Null if the edge does not answer ACME challenges. */
  readonly acmeCertificates: EdgeCertificates | null;
  readonly captures: CaptureSink;
  readonly policies: PolicyGate;
  readonly heldBodies: HeldBodies;
  /** Route to the platform. Undefined if the edge does not serve the platform's host. */
  readonly platform?: PlatformRoute | undefined;
  readonly platformUrl: HttpRouterOptions['platformUrl'];
  /** Answers callbacks of sign-ins at the operator's providers. */
  readonly callbackRelay: HttpRouterOptions['callbackRelay'];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly report: ReportInternalError;
  /** Traces of HTTP requests. Null without telemetry. */
  readonly tracer: Tracer | null;
  /** Receives clients that connect through the HTTP ports, if enabled by `[server] control_on_public`. */
  readonly clients: ClientIngress;
  /** Called when a visitor's connection has closed or a request is answered. */
  readonly onStreamEnd: () => void;
}

export class Ingress {
  readonly ports: PortIngresses;
  readonly peers: PeerJoins;
  readonly relays: PeerRelays;
  readonly http: HttpIngress;
  readonly httpListeners: HttpListeners;
  readonly passthrough: TlsPassthrough;
  /** Public address of the edge as reported to registering clients. */
  readonly publicAddress: PublicAddress;
  readonly #clock: Clock;
  readonly #logger: Logger;

  constructor(options: IngressOptions) {
    const { server, tunnels, clock, logger } = options;
    this.#clock = clock;
    this.#logger = logger;
    const parts = { ...options, host: server.host };
    const relay = makeRelay(parts);
    this.ports = makePortIngresses(parts, relay);
    this.peers = new PeerJoins({ ...options, peersPerTunnel: options.config.p2p.peers_per_tunnel });
    this.relays = new PeerRelays({ ...options, joins: this.peers });
    this.http = new HttpIngress({
      ...options,
      clients: server.control_on_public ? options.clients : undefined,
      router: this.#makeRouter(options),
      isListed: (service) => tunnels.has(service) || service === options.platform?.route,
      headTimeoutMs: server.head_timeout_secs * 1000,
      firstByteTimeoutMs: server.first_byte_timeout_secs * 1000,
    });
    this.passthrough = new TlsPassthrough({ ...options, domain: server.domain, relay });
    this.httpListeners = new HttpListeners({
      ...options,
      ingress: this.http,
      passthrough: this.passthrough,
      challenges: options.acmeCertificates === null ? null : challengesOf(options, options.acmeCertificates),
    });
    this.publicAddress = {
      domain: server.domain,
      publicHttp: (host) => this.httpListeners.publicHttp(host),
      httpsPort: () => this.httpListeners.publicPorts.https,
    };
  }

  #makeRouter(options: IngressOptions): HttpIngressOptions['router'] {
    const { server, tunnels, names, reserved, callbackRelay, platform, platformUrl, acmeCertificates } = options;
    const shared = {
      domain: server.domain,
      tunnels,
      names,
      reserved,
      callbackRelay,
      platform,
      platformUrl,
      trustedProxies: server.trusted_proxies,
      takesClients: server.control_on_public,
    };
    const redirectPort = (host: string): number | null => this.httpListeners.redirectPort(host);
    const router = new HttpRouter({ ...shared, redirectPort });
    if (acmeCertificates === null) return router;
    const unredirected = new HttpRouter({ ...shared, redirectPort: () => null });
    return new ChallengeRouter({ router, unredirected, certificates: acmeCertificates });
  }

  /** Opens the HTTP ports. Ports of tcp and udp tunnels open with their tunnels. */
  async openHttp(ports: { readonly isSecure: boolean }): Promise<void> {
    try {
      await this.httpListeners.start(ports);
    } catch (error) {
      this.httpListeners.stop();
      throw error;
    }
    this.http.start();
  }

  closeHttp(): void {
    this.httpListeners.stop();
    this.http.stop();
  }

  /** Closes all public ports. Open connections get `drainMs` milliseconds to finish. */
  async drain(drainMs: number): Promise<void> {
    const ports = this.#streamed;
    await Promise.all(ports.map((port) => port.closeAll()));
    this.httpListeners.stop();
    this.http.drain();
    const isIdle = await this.#idleWithin(drainMs);
    const connections = ports.reduce((sum, port) => sum + port.connections, this.http.connections);
    if (!isIdle) this.#logger.warn({ connections }, 'connections did not finish in time');
    for (const port of ports) port.resetConnections();
    this.http.stop();
  }

  /** Closes all public ports and connections immediately. */
  cut(): void {
    for (const port of this.#streamed) {
      void port.closeAll();
      port.resetConnections();
    }
    this.closeHttp();
  }

  /** All entry points for visitors and peers except the HTTP ports. */
  get #streamed(): readonly Pick<PeerRelays, 'connections' | 'closeAll' | 'whenIdle' | 'resetConnections'>[] {
    return [...Object.values(this.ports), this.relays];
  }

  #idleWithin(ms: number): Promise<boolean> {
    const ingresses = [...this.#streamed, this.http];
    return new Promise((resolve) => {
      const timer = this.#clock.setTimeout(() => resolve(false), ms);
      void Promise.all(ingresses.map((ingress) => ingress.whenIdle())).then(() => {
        timer.cancel();
        resolve(true);
      });
    });
  }
}

const challengesOf = ({ server, clock }: IngressOptions, certificates: EdgeCertificates): ChallengeHandshakes =>
  new ChallengeHandshakes({ domain: server.domain, certificates, clock });
