// The composition root of the edge: makes every part, joins them, starts and stops them in order. Nothing else wires.
import { randomInt } from 'node:crypto';
import { platformHostAtEdge, restListenerOf, type ServerConfig } from '@tunnel/config/server';
import { createProcessGate, type ProcessGate } from '@tunnel/http-shell';
import { CAPABILITY } from '@tunnel/protocol';
import { platformLabelOf } from '@tunnel/rules/names';
import { InFlight } from '@tunnel/rules/rate';
import { InternalErrors, Lifecycle, randomToken, Secret } from '@tunnel/runtime';
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

/** connections to REST and metrics at once, however many descriptors there are */
const API_CONNECTIONS_MAX = 2048;

/** What the parts other than the drain may take to stop. */
const STOP_GRACE_MS = 5000;
/** The version of one that nobody has released. */
const DEVELOPMENT = 'development';
/** Names that the edge chooses must not be guessed: no ordinary random number will do. */
const secureRandom = (): number => randomInt(2 ** 32) / 2 ** 32;

export const createEdge = (config: ServerConfig, deps: EdgeDeps): Edge => new ComposedEdge(config, deps);

class ComposedEdge implements Edge {
  readonly #config: ServerConfig;
  readonly #options: EdgeDeps;
  readonly #version: string;
  /** Of this run: by it the platform shows itself to the REST. */
  readonly #platformSecret = new Secret(randomToken());
  readonly #internalErrors: InternalErrors;
  // In the order in which they are made: each part is given parts above it.
  readonly #connections: ProcessGate;
  readonly #tls: EdgeTls;
  readonly #backend: Backend;
  readonly #failures: AuthFailures;
  readonly #captures: CaptureStore;
  readonly #policies: EdgePolicies;
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
    // Who gets a place at all.
    this.#connections = createProcessGate(config.limits, {
      ...options,
      takes: 'visitors, clients and callers',
      callersMax: API_CONNECTIONS_MAX,
      trustedProxies: config.server.trusted_proxies,
    });
    this.#tls = new EdgeTls(config, options, () => this.#renewTls());
    // Who may use the edge, and who is told what happens on it.
    this.#backend = options.backend ?? this.#chooseBackend();
    this.#backend.certificates?.follow(this.#tls);
    this.#failures = new AuthFailures({ clock, perMinute: limits.auth_failures_per_minute });
    // What there is to be reached. Captures see tunnels come and go: theirs go with them.
    const runId = randomInt(36 ** 5).toString(36);
    this.#captures = new CaptureStore({ ...config.capture, accountShare: limits.account_share, clock, runId });
    const edgeHost = `edge.${config.server.domain}`;
    const edgeUrl = () => httpUrl(this.#ingress.httpListeners.publicHttp(edgeHost), edgeHost);
    this.#policies = new EdgePolicies(config, { ...options, edgeUrl });
    this.#tunnels = new Registry([this.#captures, this.#policies.store]);
    this.#names = new NameRegistry({ clock, random: options.random ?? secureRandom });
    // Where visitors come in.
    this.#ingress = this.#makeIngress();
    // Who looks at the groups.
    this.#feed = new GroupFeed({ regionId: region.id, clock });
    this.#backend.onRevoked((revocation) => this.#feed.revoked(revocation));
    this.#groupMetrics = new GroupMetrics(clock);
    this.#alerts = createAlertSender(config, { ...options, version: this.#version, rates: options.alertRates });
    // Where clients come in, and come back to.
    this.#endpoints = this.#makeEndpoints();
    this.#recovery = this.#makeRecovery();
    const { report } = this.#internalErrors;
    this.#datagramPorts = new DatagramPorts(config, { ...options, endpoints: this.#endpoints, report });
    this.#control = this.#makeControl();
    // Who looks at all of it.
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
    // Streams of events would never end by themselves.
    this.#feed.close();
    await this.#life.stop({ deadlineMs: drainMs + STOP_GRACE_MS });
  }

  stopNow(): void {
    this.#control.cut();
    this.#ingress.cut();
    void this.stop({ drainMs: 0 });
  }

  // ---- the order of start and stop ----

  /** Started in this order, stopped in the reverse one. */
  #makeLife(): Lifecycle {
    const life = new Lifecycle({ logger: this.#options.logger, clock: this.#options.clock });
    const captures = this.#captures;
    // Before any port opens: a bad certificate is a mistake in the file, as an unknown key is.
    life.add({
      name: 'certificate',
      start: () => this.#tls.start(),
      stop: async () => this.#tls.stop(),
    });
    // Keys must be answerable before anyone can show one, and closed tunnels reportable until the last one is closed.
    life.add({ name: 'backend', start: () => this.#backend.start(), stop: () => this.#backend.stop() });
    // Watchers before what they watch: they see the start, and the whole drain.
    life.add({ name: 'metrics', start: () => this.#metricsServer.start(), stop: () => this.#metricsServer.stop() });
    life.add({ name: 'rest', start: () => this.#openRest(), stop: () => this.#rest.stop() });
    life.add({ name: 'captures', start: async () => captures.start(), stop: async () => captures.stop() });
    // Before anybody can ask for an endpoint; until the last one is given back. Before the http port opens: visitors of a name whose client is about to
    // come back get a 502, not a 404 that says that there is no such tunnel.
    if (this.#recovery !== undefined) life.add(this.#recovery);
    // Before the control plane: a client is told its URL when it registers, and the URL holds this port.
    life.add({
      name: 'http',
      start: () => this.#ingress.openHttp({ isSecure: this.#tls.hasHttpsPort }),
      stop: async () => this.#ingress.closeHttp(),
    });
    // After those: what a client may come back to is not free. Before any client is told of them; until the last datagram of the drain is out.
    life.add(this.#datagramPorts);
    // Last: an open control port is the promise that a client may come. First to stop: the drain is its stop.
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
    // Clients first: they look for another edge while their connections here still run.
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
    return { ...this.addresses, isControlSecure: this.#tls.hasSecurePorts, isCovered };
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
      platform: this.#platformRoute(),
      platformUrl: () => this.#backend.platformUrl ?? null,
      clock,
      logger,
      report: this.#internalErrors.report,
      onStreamEnd: () => this.#backend.streamEnded(),
    });
  }

  /** undefined: people reach the platform by another way, or there is none in this stack. */
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

  /** For handshakes from now on. */
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
