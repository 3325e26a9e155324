// Composition root of the edge: creates all parts, connects the parts, and starts and stops the parts in order. No other module does such
// wiring.
import { randomInt } from 'node:crypto';
import { platformHostAtEdge, restListenerOf, type ServerConfig } from '@tunnel/config/server';
import { createProcessGate, type ProcessGate } from '@tunnel/http-shell';
import { CAPABILITY } from '@tunnel/protocol';
import { platformLabelOf } from '@tunnel/rules/names';
import { InFlight } from '@tunnel/rules/rate';
import { createTracer, InternalErrors, Lifecycle, randomToken, Secret, type Tracer } from '@tunnel/runtime';
import { GroupFeed } from './admin/group-feed.ts';
import { GroupMetrics } from './admin/group-metrics.ts';
import type { MetricsServer } from './admin/metrics-server.ts';
import { restUrlOf, secureRest } from './admin/rest-security.ts';
import type { RestServer } from './admin/rest-server.ts';
import type { AlertSender } from './alerts/alert-sender.ts';
import { createAlertSender, groupAlertWatcher, logPrivateAlerts } from './alerts/group-alert-watcher.ts';
import { LastAlerts } from './alerts/last-alerts.ts';
import type { Backend } from './backend/backend.ts';
import { chooseBackend, type OpenPorts } from './backend/choose-backend.ts';
import { CaptureStore } from './capture/capture-store.ts';
import { AuthFailures } from './control/authentication.ts';
import { ControlPlane } from './control/control-plane.ts';
import { DatagramPorts } from './control/datagram-ports.ts';
import { type AdminParts, makeMetricsServer, makeRest } from './edge-admin.ts';
import type { Edge, EdgeDeps } from './edge-interface.ts';
import { EdgePolicies } from './edge-policies.ts';
import { EdgeTls } from './edge-tls.ts';
import { httpUrl } from './ingress/http/http-listeners.ts';
import { Ingress } from './ingress/ingress.ts';
import { portRanges, switchedOff } from './ingress/kinds.ts';
import { Balancer } from './routing/balancer.ts';
import { EndpointRecovery } from './routing/endpoint-recovery.ts';
import { EndpointRegistry, NameRegistry } from './routing/endpoints.ts';
import { Groups } from './routing/groups.ts';
import { PlatformRoute } from './routing/platform-route.ts';
import { Registry } from './routing/registry.ts';

/** Maximum concurrent connections to the REST and metrics ports, regardless of the number of file descriptors. */
const API_CONNECTIONS_MAX = 2048;

/** Time for stopping all parts, in addition to the drain. */
const STOP_GRACE_MS = 5000;
/** Version of an edge that runs from an unreleased checkout. */
const DEVELOPMENT = 'development';
/** Cryptographically secure random number in [0, 1). Names chosen by the edge must not be predictable. */
const secureRandom = (): number => randomInt(2 ** 32) / 2 ** 32;

export const createEdge = (config: ServerConfig, deps: EdgeDeps): Edge => new ComposedEdge(config, deps);

class ComposedEdge implements Edge {
  readonly #config: ServerConfig;
  readonly #options: EdgeDeps;
  readonly #version: string;
  /** Secret with which the platform authenticates to the edge's REST API. Generated at each start of the edge. */
  readonly #platformSecret = new Secret(randomToken());
  readonly #internalErrors: InternalErrors;
  // Parts of the edge in order of creation. A part depends only on parts above.
  readonly #connections: ProcessGate;
  readonly #tls: EdgeTls;
  readonly #backend: Backend;
  readonly #failures: AuthFailures;
  readonly #captures: CaptureStore;
  readonly #policies: EdgePolicies;
  /** Traces of HTTP requests. Null without telemetry. */
  readonly #tracer: Tracer | null;
  readonly #tunnels: Registry;
  readonly #names: NameRegistry;
  readonly #ingress: Ingress;
  readonly #feed: GroupFeed;
  readonly #groupMetrics: GroupMetrics;
  readonly #alerts: AlertSender;
  readonly #lastAlerts = new LastAlerts();
  readonly #endpoints: EndpointRegistry;
  readonly #recovery: EndpointRecovery | undefined;
  readonly #datagramPorts: DatagramPorts;
  readonly #control: ControlPlane;
  readonly #metricsServer: MetricsServer;
  readonly #rest: RestServer;
  readonly #life: Lifecycle;
  #isRestOpen = false;
  #isOpen = false;
  #startedAt = 0;
  #drainMs = 0;

  constructor(config: ServerConfig, options: EdgeDeps) {
    const { clock } = options;
    const { limits, region } = config;
    this.#config = config;
    this.#options = options;
    this.#version = options.version ?? DEVELOPMENT;
    this.#internalErrors = new InternalErrors(options.logger, () => clock.monotonic());
    // Admission control: limits on the connections to the process.
    this.#connections = createProcessGate(config.limits, {
      ...options,
      takes: 'visitors, clients and callers',
      callersMax: API_CONNECTIONS_MAX,
      trustedProxies: config.server.trusted_proxies,
    });
    this.#tls = new EdgeTls(config, options, () => this.#renewTls());
    // Authentication of clients, and reporting to the backend.
    this.#backend = options.backend ?? this.#chooseBackend();
    this.#backend.certificates?.follow(this.#tls);
    this.#failures = new AuthFailures({ clock, perMinute: limits.auth_failures_per_minute });
    // Tunnels and names. The registry notifies the capture store and the policy store when tunnels open and close, because captures and
    // policies belong to a tunnel.
    const runId = randomInt(36 ** 5).toString(36);
    this.#captures = new CaptureStore({ ...config.capture, accountShare: limits.account_share, clock, runId });
    const edgeHost = `edge.${config.server.domain}`;
    const edgeUrl = () => httpUrl(this.#ingress.httpListeners.publicHttp(edgeHost), edgeHost);
    this.#policies = new EdgePolicies(config, { ...options, edgeUrl });
    this.#tunnels = new Registry([this.#captures, this.#policies.store]);
    this.#names = new NameRegistry({ clock, random: options.random ?? secureRandom });
    this.#tracer = createTracer(config.telemetry, { ...options, part: 'edge', version: this.#version });
    // Ports at which visitors connect.
    this.#ingress = this.#makeIngress();
    // Observers of groups: event feed, metrics and alerts.
    this.#feed = new GroupFeed({ regionId: region.id, clock });
    this.#backend.onRevoked((revocation) => this.#feed.revoked(revocation));
    this.#groupMetrics = new GroupMetrics(clock);
    this.#alerts = createAlertSender(config, { ...options, version: this.#version, rates: options.alertRates });
    // Control plane, to which new and returning clients connect.
    this.#endpoints = this.#makeEndpoints();
    this.#recovery = this.#makeRecovery();
    const { report } = this.#internalErrors;
    this.#datagramPorts = new DatagramPorts(config, { ...options, endpoints: this.#endpoints, report });
    this.#control = this.#makeControl();
    // Metrics server and REST server, which read from all other parts.
    const admin = this.#adminParts();
    this.#metricsServer = makeMetricsServer(admin);
    this.#rest = makeRest(admin);
    this.#life = this.#makeLife();
  }

  get addresses(): Edge['addresses'] {
    return {
      control: this.#control.address,
      http: this.#ingress.httpListeners.http,
      https: this.#ingress.httpListeners.https,
      api: { ...this.#rest.address, tls: restListenerOf(this.#config).tls },
      metrics: this.#metricsServer.address,
      udpPorts: this.#datagramPorts.numbers,
      stackApi: this.#rest.stackAddress,
    };
  }

  get counters(): Edge['counters'] {
    const { sessions, carriers, streams } = this.#control.figures;
    const { ports, http, relays } = this.#ingress;
    const visitors = Object.values(ports).reduce((sum, port) => sum + port.connections, 0);
    const connections = visitors + http.connections + relays.connections;
    return { sessions, carriers, streams, tunnels: this.#tunnels.size, connections };
  }

  async start(): Promise<void> {
    this.#startedAt = this.#options.clock.monotonic();
    this.#connections.announce();
    await this.#life.start();
    this.#isOpen = true;
    this.#backend.ready();
    logPrivateAlerts(this.#config, this.#options.logger);
  }

  async stop({ drainMs }: { readonly drainMs: number }): Promise<void> {
    this.#drainMs = drainMs;
    // The feed of group events is closed first, because event streams never end on their own.
    this.#feed.close();
    await this.#life.stop({ deadlineMs: drainMs + STOP_GRACE_MS });
  }

  stopNow(): void {
    this.#control.cut();
    this.#ingress.cut();
    void this.stop({ drainMs: 0 });
  }

  // ---- the order of start and stop ----

  /** Defines the start order of the parts. The parts stop in reverse order. */
  #makeLife(): Lifecycle {
    const life = new Lifecycle({ logger: this.#options.logger, clock: this.#options.clock });
    const captures = this.#captures;
    // Certificates load before any port opens: an invalid certificate is a configuration error, like an unknown key.
    life.add({
      name: 'certificate',
      start: () => this.#tls.start(),
      stop: async () => this.#tls.stop(),
    });
    // The backend must check keys before the first client connects, and must report closed tunnels until the last tunnel has closed.
    life.add({ name: 'backend', start: () => this.#backend.start(), stop: () => this.#backend.stop() });
    // Metrics, REST and captures start before the parts under observation, so that the start and the whole drain are visible.
    life.add({ name: 'metrics', start: () => this.#metricsServer.start(), stop: () => this.#metricsServer.stop() });
    life.add({ name: 'rest', start: () => this.#openRest(), stop: () => this.#rest.stop() });
    life.add({ name: 'captures', start: async () => captures.start(), stop: async () => captures.stop() });
    // Spans are delivered until the last visitor's connection has closed.
    if (this.#tracer !== null) life.add(this.#tracer);
    // Recovery starts before any client can request an endpoint, and stops after the last endpoint was released. Recovery also starts
    // before the HTTP port opens: if the client of a name is about to reconnect, visitors get a 502 instead of a 404, which would mean
    // that the tunnel does not exist.
    if (this.#recovery !== undefined) life.add(this.#recovery);
    // The HTTP port opens before the control plane, because a client learns its URL at registration, and the URL contains the HTTP port.
    life.add({
      name: 'http',
      start: () => this.#ingress.openHttp({ isSecure: this.#tls.hasHttpsPort }),
      stop: async () => this.#ingress.closeHttp(),
    });
    // UDP ports open after recovery, because ports held for returning clients are not free, and before any client learns the port
    // numbers. The UDP ports close after the last datagram of the drain was sent.
    life.add(this.#datagramPorts);
    // The control plane starts last, because an open control port promises that clients can connect. The control plane stops first,
    // because its stop is the drain.
    life.add({
      name: 'control plane',
      start: () => this.#control.start(this.#tls.optionsOf('clients')),
      stop: () => this.#drainAndEnd(),
    });
    return life;
  }

  async #openRest(): Promise<void> {
    secureRest(this.#config, this.#tls.files, this.#options.logger);
    this.#renewRest();
    await this.#rest.start();
    this.#isRestOpen = true;
  }

  async #drainAndEnd(): Promise<void> {
    // Clients are notified first, so that clients can look for another edge while their connections to this edge still work.
    this.#control.drain(this.#drainMs / 1000);
    await this.#ingress.drain(this.#drainMs);
    await this.#control.end();
    this.#alerts.close();
    this.#policies.close();
  }

  // ---- the parts ----

  #chooseBackend(): Backend {
    const { clock, logger, adminToken, random = Math.random, dataDir, platform } = this.#options;
    return chooseBackend(this.#config, {
      clock,
      logger,
      adminToken,
      random,
      dataDir,
      platform,
      version: this.#version,
      apiSecret: this.#platformSecret,
      apiUrl: () => restUrlOf(this.#config, this.#isRestOpen ? this.#rest.address : null),
      openPorts: () => (this.#isOpen ? this.#openPorts() : null),
      isPassedThrough: (host) => this.#ingress.passthrough.routeFor(host) !== undefined,
    });
  }

  #openPorts(): OpenPorts {
    const isCovered = this.#tls.certificates.covers(this.#config.server.domain);
    const { http, https } = this.#ingress.httpListeners.publicPorts;
    const ports = { http: { port: http }, https: https === null ? null : { port: https } };
    return { control: this.addresses.control, ...ports, isControlSecure: this.#tls.hasSecurePorts, isCovered };
  }

  #makeIngress(): Ingress {
    const { server, limits } = this.#config;
    const { clock, logger, random = Math.random } = this.#options;
    const balancer = () => {
      const counts = new InFlight({ perKey: limits.connections_per_tunnel });
      return new Balancer({ counts, random });
    };
    return new Ingress({
      server,
      tunnels: this.#tunnels,
      names: this.#names,
      reserved: this.#backend.reserved,
      balancer: balancer(),
      flowBalancer: balancer(),
      config: this.#config,
      tell: (sessionId, message) => this.#control.tell(sessionId, message),
      offer: (sessionId, message) => this.#control.offer(sessionId, message, CAPABILITY.EDGE_ANSWERS),
      udpFlowsMax: this.#options.udpFlowsMax,
      pathPorts: () => this.#datagramPorts.numbers,
      clients: { takeOver: (...connection) => this.#control.takeOver(...connection) },
      gate: this.#connections.gate,
      certificates: this.#tls.certificates,
      acmeCertificates: this.#backend.certificates ?? null,
      captures: this.#captures,
      policies: this.#policies.gate,
      heldBodies: this.#policies.heldBodies,
      callbackRelay: this.#policies.callbackRelay,
      tracer: this.#tracer,
      platform: this.#platformRoute(),
      platformUrl: () => this.#backend.platformUrl ?? null,
      clock,
      logger,
      report: this.#internalErrors.report,
      onStreamEnd: () => this.#backend.streamEnded(),
    });
  }

  /**
   * Returns the route to the platform of the same stack. Returns undefined without such a platform, or if browsers reach the platform
   * without passing through the edge.
   */
  #platformRoute(): PlatformRoute | undefined {
    const { clock, platformAt: address } = this.#options;
    const publicHost = platformHostAtEdge(this.#config);
    if (address === undefined || publicHost === null) return undefined;
    return new PlatformRoute({ publicHost, address, clock, report: this.#internalErrors.report });
  }

  #makeEndpoints(): EndpointRegistry {
    const { clock, random = Math.random } = this.#options;
    const { ports: listeners, peers: peerNames } = this.#ingress;
    const parts = { listeners, peerNames, names: this.#names, reserved: this.#backend.reserved, clock, random };
    const { limits } = this.#config;
    return new EndpointRegistry({ ...parts, portRanges: portRanges(limits), accountShare: limits.account_share });
  }

  #makeRecovery(): EndpointRecovery | undefined {
    const { clock, logger, dataDir } = this.#options;
    if (dataDir === undefined) return undefined;
    return new EndpointRecovery({ dataDir, endpoints: this.#endpoints, clock, logger });
  }

  #makeControl(): ControlPlane {
    const { server, limits, region, load_balancing } = this.#config;
    const { clock, logger } = this.#options;
    const tunnels = this.#tunnels;
    const endpoints = this.#endpoints;
    const recovery = this.#recovery;
    const { store: policies, loginProviders } = this.#policies;
    const watchers = [this.#feed, this.#groupMetrics, groupAlertWatcher(this.#alerts, this.#lastAlerts), policies];
    return new ControlPlane({
      host: server.host,
      port: server.control_port,
      ...this.#ingress.publicAddress,
      region,
      localPorts: () => [this.#rest.address.port, this.#metricsServer.address.port],
      tunnelsPerSession: limits.tunnels_per_session,
      trustedProxies: server.trusted_proxies,
      gate: this.#connections.gate,
      clock,
      logger,
      report: this.#internalErrors.report,
      backend: this.#backend,
      failures: this.#failures,
      endpoints,
      groups: new Groups({ domain: server.domain, clock, logger, endpoints, tunnels, policies, recovery, watchers }),
      peers: this.#ingress.peers,
      relays: this.#ingress.relays,
      udp: this.#ingress.ports.udp,
      tunnels,
      policies,
      loginProviders,
      recovery,
      loadBalancing: load_balancing.enabled,
      switchedOff: switchedOff(this.#config),
      platformLabel: platformLabelOf(new URL(this.#config.platform.public_url).hostname, server.domain),
      datagramPorts: this.#datagramPorts,
      checkAlertUrl: (url, withinMs) => this.#alerts.urls.checkAtRegistration(url, withinMs),
      controlRateLimits: this.#options.controlRateLimits,
    });
  }

  #adminParts(): AdminParts {
    return {
      config: this.#config,
      deps: this.#options,
      version: this.#version,
      platformSecret: this.#platformSecret,
      startedMs: () => this.#startedAt,
      internalErrors: this.#internalErrors,
      connections: this.#connections,
      backend: this.#backend,
      failures: this.#failures,
      captures: this.#captures,
      policies: this.#policies,
      droppedSpans: () => this.#tracer?.dropped ?? 0,
      tunnels: this.#tunnels,
      ingress: this.#ingress,
      feed: this.#feed,
      groupMetrics: this.#groupMetrics,
      alerts: this.#alerts,
      lastAlerts: this.#lastAlerts,
      control: this.#control,
      certificates: {
        acmeCertificates: this.#backend.certificates ?? null,
        files: () => this.#tls.files,
        local: () => this.#tls.localPair,
      },
    };
  }

  /** Passes the renewed TLS options to all ports, for later handshakes. */
  #renewTls(): void {
    this.#ingress.httpListeners.renew();
    this.#control.renewCertificate(this.#tls.optionsOf('clients'));
    this.#renewRest();
  }

  #renewRest(): void {
    const options = this.#tls.optionsOf('rest');
    if (options !== null) this.#rest.renew(options);
  }
}
