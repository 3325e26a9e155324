// The composition root of the edge: makes every part, joins them, starts and stops them in order. Nothing else wires.
import { randomInt } from 'node:crypto';
import { showProtocol } from '@tunnel/contract';
import { ConnectionCounts, callerAddressOf, mayAlertPrivate } from '@tunnel/core';
import {
  type Clock,
  createMetrics,
  Lifecycle,
  type Logger,
  randomId,
  randomToken,
  Secret,
  type ServerConfig,
} from '@tunnel/runtime';

import { GroupFeed } from './admin/group-feed.ts';
import { GroupMetrics } from './admin/group-metrics.ts';
import { EdgeMetrics, MetricsServer } from './admin/metrics-server.ts';
import { RestServer } from './admin/rest-server.ts';
import { AlertSender } from './alerts/alert-sender.ts';
import type { Backend } from './backend/backend.ts';
import { chooseBackend, type StackPlatform } from './backend/choose-backend.ts';
import { CaptureService } from './capture/capture-service.ts';
import { CaptureStore } from './capture/capture-store.ts';
import { Replays } from './capture/replay.ts';
import { AuthFailures } from './control/authentication.ts';
import { ControlPlane } from './control/control-plane.ts';
import { Ingress } from './ingress/ingress.ts';
import { portRanges } from './ingress/kinds.ts';
import { Certificate } from './ingress/tls/certificate.ts';
import { Balancer } from './routing/balancer.ts';
import { EndpointRegistry, NameRegistry } from './routing/endpoints.ts';
import { Groups, type GroupWatcher } from './routing/groups.ts';
import { Registry } from './routing/registry.ts';

/** What an edge is given from outside, beside its configuration. */
export interface EdgeDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly adminToken: Secret;
  /** Uniform in [0, 1); chooses ports and names. */
  readonly random?: () => number;
  /** What GET /api/status shows. */
  readonly version?: string;
  /** Holds the journal; the configured one unless told. */
  readonly dataDir?: string;
  /**
   * The platform of the same stack, which asks the REST over a loopback listener of its own. Without one `[server] platform_url` says
   * where the platform is; without that, too, the edge is alone.
   */
  readonly platform?: StackPlatform;
  /** How often each part of the stack was started again; absent: nobody does that for this edge. */
  readonly restarts?: () => Readonly<Record<string, number>>;
  /** Instead of all that. */
  readonly backend?: Backend;
}

export interface EdgeAddress {
  readonly host: string;
  readonly port: number;
}

export interface Edge {
  /** Rejects with one fault that names the port and its key when a port is taken; nothing then stays open. */
  start(): Promise<void>;
  /** Lets connections finish for up to `drainMs`, then ends them. */
  stop(options: { readonly drainMs: number }): Promise<void>;
  /** Ends everything at once, without a goodbye. */
  stopNow(): void;
  /** How busy it is: what is kept of it when it crashes. */
  readonly counters: Readonly<Record<string, number>>;
  /** Only while it runs. */
  readonly addresses: {
    readonly control: EdgeAddress;
    readonly http: EdgeAddress;
    /** null: there is no certificate. */
    readonly https: EdgeAddress | null;
    readonly api: EdgeAddress;
    readonly metrics: EdgeAddress;
    /** Where the platform of the same stack asks the REST; null: there is none. */
    readonly stackApi: EdgeAddress | null;
  };
}

/** What the parts other than the drain may take to stop. */
const STOP_GRACE_MS = 5000;
/** The version of one that nobody has released. */
const DEVELOPMENT = 'development';
/** Names that the edge chooses must not be guessed: no ordinary random number will do. */
const secureRandom = (): number => randomInt(2 ** 32) / 2 ** 32;

export const createEdge = (config: ServerConfig, deps: EdgeDeps): Edge => new ComposedEdge(config, deps);

class ComposedEdge implements Edge {
  readonly #config: ServerConfig;
  readonly #deps: EdgeDeps;
  readonly #version: string;
  /** Of this run: by it the platform shows itself to the REST. */
  readonly #platformSecret = new Secret(randomToken());
  // In the order in which they are made: each part is given parts above it.
  readonly #backend: Backend;
  readonly #failures: AuthFailures;
  readonly #captures: CaptureStore;
  readonly #tunnels: Registry;
  readonly #names: NameRegistry;
  readonly #ingress: Ingress;
  readonly #feed: GroupFeed;
  readonly #groupMetrics: GroupMetrics;
  readonly #alerts: AlertSender;
  readonly #control: ControlPlane;
  readonly #metricsServer: MetricsServer;
  readonly #rest: RestServer;
  readonly #certificate: Certificate;
  readonly #life: Lifecycle;
  #isRestOpen = false;
  #isOpen = false;
  #startedAt = 0;
  #drainMs = 0;

  constructor(config: ServerConfig, deps: EdgeDeps) {
    const { clock } = deps;
    const { limits, region } = config;
    this.#config = config;
    this.#deps = deps;
    this.#version = deps.version ?? DEVELOPMENT;
    // Who may use the edge, and who is told what happens on it.
    this.#backend = deps.backend ?? this.#chooseBackend();
    this.#failures = new AuthFailures({ clock, perMinute: limits.auth_failures_per_minute });
    // What there is to be reached. Captures see tunnels come and go: theirs go with them.
    this.#captures = new CaptureStore({ ...config.capture, clock, runId: randomInt(36 ** 5).toString(36) });
    this.#tunnels = new Registry(this.#captures);
    this.#names = new NameRegistry({ clock, random: deps.random ?? secureRandom });
    // Where visitors come in.
    this.#ingress = this.#makeIngress();
    // Who looks at the groups.
    this.#feed = new GroupFeed({ regionId: region.id, clock });
    this.#backend.onRevoked((revocation) => this.#feed.revoked(revocation));
    this.#groupMetrics = new GroupMetrics(clock);
    this.#alerts = this.#makeAlerts();
    // Where clients come in.
    this.#control = this.#makeControl();
    // Who looks at all of it.
    this.#metricsServer = this.#makeMetricsServer();
    this.#rest = this.#makeRest();
    this.#certificate = this.#makeCertificate();
    this.#life = this.#makeLife();
  }

  get addresses(): Edge['addresses'] {
    return {
      control: this.#control.address,
      http: this.#ingress.httpListeners.http,
      https: this.#ingress.httpListeners.https,
      api: this.#rest.address,
      metrics: this.#metricsServer.address,
      stackApi: this.#rest.stackAddress,
    };
  }

  get counters(): Edge['counters'] {
    const { sessions, carriers, streams } = this.#control.figures;
    const visitors = Object.values(this.#ingress.ports).reduce((sum, { connections }) => sum + connections, 0);
    const connections = visitors + this.#ingress.http.connections;
    return { sessions, carriers, streams, tunnels: this.#tunnels.size, connections };
  }

  async start(): Promise<void> {
    this.#startedAt = this.#deps.clock.monotonic();
    await this.#life.start();
    this.#isOpen = true;
    this.#backend.ready();
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
    const life = new Lifecycle({ logger: this.#deps.logger, clock: this.#deps.clock });
    const captures = this.#captures;
    // Before any port opens: a bad certificate is a mistake in the file, as an unknown key is.
    life.add({
      name: 'certificate',
      start: () => this.#certificate.start(),
      stop: async () => this.#certificate.stop(),
    });
    // Keys must be answerable before anyone can show one, and closed tunnels reportable until the last one is closed.
    life.add({ name: 'backend', start: () => this.#backend.start(), stop: () => this.#backend.stop() });
    // Watchers before what they watch: they see the start, and the whole drain.
    life.add({ name: 'metrics', start: () => this.#metricsServer.start(), stop: () => this.#metricsServer.stop() });
    life.add({ name: 'rest', start: () => this.#openRest(), stop: () => this.#rest.stop() });
    life.add({ name: 'captures', start: async () => captures.start(), stop: async () => captures.stop() });
    // Before the control plane: a client is told its URL when it registers, and the URL holds this port.
    life.add({
      name: 'http',
      start: () => this.#ingress.openHttp(this.#certificate.current),
      stop: async () => this.#ingress.closeHttp(),
    });
    // Last: an open control port is the promise that a client may come. First to stop: the drain is its stop.
    life.add({
      name: 'control plane',
      start: () => this.#control.start(this.#certificate.current),
      stop: () => this.#drainAndEnd(),
    });
    return life;
  }

  async #openRest(): Promise<void> {
    await this.#rest.start();
    this.#isRestOpen = true;
  }

  async #drainAndEnd(): Promise<void> {
    // Clients first: they look for another edge while their connections here still run.
    this.#control.drain(this.#drainMs / 1000);
    await this.#ingress.drain(this.#drainMs);
    await this.#control.end();
    this.#alerts.close();
  }

  // ---- the parts ----

  #chooseBackend(): Backend {
    const { clock, logger, adminToken, random = Math.random, dataDir, platform } = this.#deps;
    return chooseBackend(this.#config, {
      ...{ clock, logger, adminToken, random, dataDir, platform },
      version: this.#version,
      apiSecret: this.#platformSecret,
      apiUrl: () => this.#apiUrl(),
      openPorts: () => (this.#isOpen ? this.addresses : null),
    });
  }

  #apiUrl(): string {
    const { api_url } = this.#config.server;
    if (api_url !== '' || !this.#isRestOpen) return api_url;
    const { host, port } = this.#rest.address;
    return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  }

  #makeIngress(): Ingress {
    const { server, limits } = this.#config;
    const { clock, logger, random = Math.random } = this.#deps;
    const counts = new ConnectionCounts({
      perTunnel: limits.connections_per_tunnel,
      perAddress: limits.connections_per_address,
    });
    return new Ingress({
      server,
      tunnels: this.#tunnels,
      names: this.#names,
      balancer: new Balancer({ counts, random }),
      captures: this.#captures,
      clock,
      logger,
      onStreamEnd: () => this.#backend.streamEnded(),
    });
  }

  #makeAlerts(): AlertSender {
    const { server, region, load_balancing } = this.#config;
    const { clock, logger } = this.#deps;
    return new AlertSender({
      operatorUrl: load_balancing.alert_webhook_url,
      allowPrivate: mayAlertPrivate(load_balancing.alert_allow_private, server.host),
      secret: load_balancing.alert_secret,
      regionId: region.id,
      version: this.#version,
      clock,
      logger,
    });
  }

  #makeControl(): ControlPlane {
    const { server, limits, region, load_balancing } = this.#config;
    const { clock, logger, random = Math.random } = this.#deps;
    const tunnels = this.#tunnels;
    const endpoints = new EndpointRegistry({
      listeners: this.#ingress.ports,
      portRanges: portRanges(limits),
      names: this.#names,
      clock,
      random,
    });
    const watchers = [this.#feed, this.#groupMetrics, this.#alarm()];
    return new ControlPlane({
      host: server.host,
      port: server.control_port,
      domain: server.domain,
      publicHttp: () => this.#ingress.httpListeners.publicHttp,
      regionId: region.id,
      tunnelsPerSession: limits.tunnels_per_session,
      trustedProxies: server.trusted_proxies,
      clock,
      logger,
      backend: this.#backend,
      failures: this.#failures,
      endpoints,
      groups: new Groups({ clock, logger, endpoints, tunnels, watchers }),
      tunnels,
      loadBalancing: load_balancing.enabled,
      checkAlertUrl: (url, withinMs) => this.#alerts.urls.checkAtRegistration(url, withinMs),
    });
  }

  #alarm(): GroupWatcher {
    return {
      zeroHealthy: ({ group: { protocol, label, name: groupName, keyHashShort }, urls, memberCount, at }) =>
        this.#alerts.send({
          ...{ label, groupName, keyHashShort, memberCount, at },
          protocol: showProtocol(protocol),
          tenantUrls: urls,
        }),
    };
  }

  #makeMetricsServer(): MetricsServer {
    const { server, region, load_balancing } = this.#config;
    const { logger } = this.#deps;
    const control = this.#control;
    const metrics = new EdgeMetrics(createMetrics({ processMetrics: true }), {
      regionId: region.id,
      tunnels: this.#tunnels,
      ports: this.#ingress.ports,
      http: this.#ingress.http,
      sessions: () => control.figures.sessions,
      carriers: () => control.figures.carriers,
      streams: () => control.figures.streams,
      authFailures: () => this.#failures.total,
      droppedLogLines: () => logger.droppedLines,
      sseConsumers: () => this.#feed.consumers,
      restarts: this.#deps.restarts ?? null,
      loadBalancing: load_balancing.enabled ? { groups: this.#groupMetrics, alerts: this.#alerts.totals } : null,
    });
    return new MetricsServer({ host: server.metrics_host, port: server.metrics_port }, metrics, logger);
  }

  #makeRest(): RestServer {
    const { server, region } = this.#config;
    const { clock, logger } = this.#deps;
    const [tunnels, store, control] = [this.#tunnels, this.#captures, this.#control];
    const replays = new Replays({ store, clock, http: this.#ingress.http });
    return new RestServer(
      { host: server.api_host === '' ? server.host : server.api_host, port: server.api_port },
      {
        backend: this.#backend,
        platformSecret: this.#platformSecret,
        tunnels,
        groups: tunnels.groups,
        feed: this.#feed,
        closeTunnel: (tunnelId, fault) => control.closeTunnel(tunnelId, fault),
        captures: new CaptureService({ store, tunnels, replays }),
        status: () => ({
          sessions: control.figures.sessions,
          tunnels: tunnels.size,
          uptime_secs: (clock.monotonic() - this.#startedAt) / 1000,
          draining: control.isDraining,
        }),
        region,
        version: this.#version,
        authFailures: this.#failures,
        callerAddress: callerAddressOf(server.trusted_proxies),
        newRequestId: () => randomId('req'),
        logger,
      },
      { isInStack: this.#deps.platform !== undefined },
    );
  }

  #makeCertificate(): Certificate {
    const { clock, logger } = this.#deps;
    return new Certificate({
      paths: this.#config.tls,
      clock,
      logger,
      onRenewed: (files) => {
        this.#ingress.httpListeners.renew(files);
        this.#control.renewCertificate(files);
      },
    });
  }
}
