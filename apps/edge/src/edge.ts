// The composition root of the edge: makes every part, joins them, starts and stops them in order.
import { randomInt } from 'node:crypto';
import { ConnectionCounts } from '@tunnel/core';
import {
  type Clock,
  createMetrics,
  Lifecycle,
  type Logger,
  randomId,
  type Secret,
  type ServerConfig,
} from '@tunnel/runtime';
import { EdgeMetrics } from './admin/edge-metrics.ts';
import { MetricsServer } from './admin/metrics-server.ts';
import { RestServer } from './admin/rest-server.ts';
import type { Backend } from './backend/backend.ts';
import { StandaloneBackend } from './backend/standalone-backend.ts';
import { CaptureDesk } from './capture/capture-desk.ts';
import { CaptureStore } from './capture/capture-store.ts';
import { Replays } from './capture/replay.ts';
import { Certificate } from './certificate.ts';
import { AuthFailures } from './control/auth-failures.ts';
import { ControlPlane } from './control/control-plane.ts';
import { GroupWatch } from './group-watch.ts';
import { HttpIngress } from './ingress/http/http-ingress.ts';
import { HttpPorts } from './ingress/http/http-ports.ts';
import { TcpListeners } from './ingress/tcp-listeners.ts';
import { Dispatcher } from './pool/dispatcher.ts';
import { Groups } from './pool/groups.ts';
import { NamePool } from './pool/name-pool.ts';
import { Places } from './pool/places.ts';
import { PortPool } from './pool/port-pool.ts';
import { TunnelTable } from './pool/tunnel-table.ts';
import { Relay } from './relay/relay.ts';

export interface EdgeDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly adminToken: Secret;
  /** Uniform in [0, 1); chooses ports and names. */
  readonly random?: () => number;
  /** What GET /api/status shows. */
  readonly version?: string;
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
  /** Only while it runs. */
  readonly addresses: {
    readonly control: EdgeAddress;
    readonly http: EdgeAddress;
    /** null: there is no certificate. */
    readonly https: EdgeAddress | null;
    readonly api: EdgeAddress;
    readonly metrics: EdgeAddress;
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
  readonly #backend: Backend;
  readonly #captures: CaptureStore;
  readonly #tunnels: TunnelTable;
  readonly #relay: Relay;
  readonly #listeners: TcpListeners;
  readonly #names: NamePool;
  readonly #http: HttpIngress;
  readonly #httpPorts: HttpPorts;
  readonly #failures: AuthFailures;
  readonly #watch: GroupWatch;
  readonly #metricsServer: MetricsServer;
  readonly #rest: RestServer;
  readonly #life: Lifecycle;
  readonly #certificate: Certificate;
  /** Made at the start, when the certificate is known. */
  #control: ControlPlane | undefined;
  #startedAt = 0;
  #drainMs = 0;

  constructor(config: ServerConfig, deps: EdgeDeps) {
    const { clock, logger } = deps;
    const { limits, server, auth } = config;
    this.#config = config;
    this.#deps = deps;
    this.#backend = new StandaloneBackend({ adminToken: deps.adminToken, keys: auth.keys });
    this.#failures = new AuthFailures({ clock, perMinute: limits.auth_failures_per_minute });
    this.#captures = new CaptureStore({ ...config.capture, clock, runId: randomInt(36 ** 5).toString(36) });
    this.#tunnels = new TunnelTable(this.#captures);
    const counts = new ConnectionCounts({
      perTunnel: limits.connections_per_tunnel,
      perAddress: limits.connections_per_address,
    });
    const dispatcher = new Dispatcher({ random: deps.random ?? Math.random });
    this.#relay = new Relay({ dispatcher, counts, logger, clock });
    const targetOn = (port: number) => this.#tunnels.byPort(port);
    this.#listeners = new TcpListeners({ host: server.host, targetOn, relay: this.#relay, logger });
    this.#certificate = this.#makeCertificate();
    this.#names = new NamePool({ clock, random: deps.random ?? secureRandom });
    this.#http = this.#makeHttp(counts, dispatcher);
    this.#httpPorts = new HttpPorts(server, this.#http, logger);
    this.#watch = new GroupWatch(config, { clock, logger, version: deps.version ?? DEVELOPMENT });
    this.#backend.onRevoked((revocation) => this.#watch.feed.revoked(revocation));
    this.#metricsServer = this.#makeMetricsServer();
    this.#rest = this.#makeRest();
    this.#life = this.#makeLife();
  }

  get addresses(): Edge['addresses'] {
    if (this.#control === undefined) throw new Error('the edge is not running');
    return {
      control: this.#control.address,
      http: this.#httpPorts.http,
      https: this.#httpPorts.https,
      api: this.#rest.address,
      metrics: this.#metricsServer.address,
    };
  }

  async start(): Promise<void> {
    this.#startedAt = this.#deps.clock.monotonic();
    await this.#life.start();
  }

  async stop({ drainMs }: { readonly drainMs: number }): Promise<void> {
    this.#drainMs = drainMs;
    // Streams of events would never end by themselves.
    this.#watch.feed.close();
    await this.#life.stop({ deadlineMs: drainMs + STOP_GRACE_MS });
  }

  stopNow(): void {
    this.#control?.cut();
    void this.#listeners.closeAll();
    this.#listeners.resetConnections();
    this.#httpPorts.stop();
    this.#http.stop();
    void this.stop({ drainMs: 0 });
  }

  /** Started in this order, stopped in the reverse one. */
  #makeLife(): Lifecycle {
    const life = new Lifecycle({ logger: this.#deps.logger, clock: this.#deps.clock });
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
    life.add({ name: 'rest', start: () => this.#rest.start(), stop: () => this.#rest.stop() });
    life.add({
      name: 'captures',
      start: async () => this.#captures.start(),
      stop: async () => this.#captures.stop(),
    });
    // Before the control plane: a client is told its URL when it registers, and the URL holds this port.
    life.add({ name: 'http', start: () => this.#openHttp(), stop: async () => this.#closeHttp() });
    // Last: an open control port is the promise that a client may come. First to stop: the drain is its stop.
    life.add({ name: 'control plane', start: () => this.#openControl(), stop: () => this.#drainAndEnd() });
    return life;
  }

  async #openHttp(): Promise<void> {
    try {
      await this.#httpPorts.start(this.#certificate.current);
    } catch (error) {
      this.#httpPorts.stop();
      throw error;
    }
    this.#http.start();
  }

  #closeHttp(): void {
    this.#httpPorts.stop();
    this.#http.stop();
  }

  #makeCertificate(): Certificate {
    const { clock, logger } = this.#deps;
    return new Certificate({
      paths: this.#config.tls,
      clock,
      logger,
      onRenewed: (files) => {
        this.#httpPorts.renew(files);
        this.#control?.renewCertificate(files);
      },
    });
  }

  #makeHttp(counts: ConnectionCounts, dispatcher: Dispatcher): HttpIngress {
    const { server } = this.#config;
    return new HttpIngress({
      clock: this.#deps.clock,
      domain: server.domain,
      tunnels: this.#tunnels,
      names: this.#names,
      dispatcher,
      counts,
      captures: this.#captures,
      headTimeoutMs: server.head_timeout_secs * 1000,
      firstByteTimeoutMs: server.first_byte_timeout_secs * 1000,
      redirectPort: () => this.#httpPorts.redirectPort,
    });
  }

  async #openControl(): Promise<void> {
    const { clock, logger, random = Math.random } = this.#deps;
    const { server, limits, region } = this.#config;
    const [from, to] = limits.tcp_port_range;
    const ports = new PortPool({ range: { from, to }, listeners: this.#listeners, clock, random });
    const places = new Places(ports, this.#names);
    const control = new ControlPlane({
      host: server.host,
      port: server.control_port,
      tls: this.#certificate.current,
      domain: server.domain,
      regionId: region.id,
      tunnelsPerSession: limits.tunnels_per_session,
      trustedProxies: server.trusted_proxies,
      clock,
      logger,
      backend: this.#backend,
      failures: this.#failures,
      publicHttp: this.#httpPorts.publicHttp,
      places,
      groups: new Groups({ clock, logger, places, tunnels: this.#tunnels, watchers: this.#watch.watchers }),
      tunnels: this.#tunnels,
      loadBalancing: this.#config.load_balancing.enabled,
      checkAlertUrl: this.#watch.checkAlertUrl,
    });
    await control.start();
    this.#control = control;
  }

  async #drainAndEnd(): Promise<void> {
    const { clock, logger } = this.#deps;
    // Clients first: they look for another edge while their connections here still run.
    this.#control?.drain(this.#drainMs / 1000);
    await this.#listeners.closeAll();
    this.#httpPorts.stop();
    this.#http.drain();
    const isIdle = await this.#idleWithin(this.#drainMs, clock);
    const connections = this.#listeners.connections + this.#http.connections;
    if (!isIdle) logger.warn({ connections }, 'connections did not finish in time');
    this.#listeners.resetConnections();
    this.#http.stop();
    await this.#control?.end();
    this.#watch.alerts.close();
  }

  #idleWithin(ms: number, clock: Clock): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = clock.setTimeout(() => resolve(false), ms);
      void Promise.all([this.#listeners.whenIdle(), this.#http.whenIdle()]).then(() => {
        timer.cancel();
        resolve(true);
      });
    });
  }

  #makeMetricsServer(): MetricsServer {
    const { server, region } = this.#config;
    const { logger } = this.#deps;
    const figures = () => this.#control?.figures ?? { sessions: 0, carriers: 0, streams: 0 };
    const metrics = new EdgeMetrics(createMetrics({ processMetrics: true }), {
      regionId: region.id,
      tunnels: this.#tunnels,
      relay: this.#relay,
      http: this.#http,
      sessions: () => figures().sessions,
      carriers: () => figures().carriers,
      streams: () => figures().streams,
      authFailures: () => this.#failures.total,
      droppedLogLines: () => logger.droppedLines,
      sseConsumers: () => this.#watch.feed.consumers,
      loadBalancing: this.#config.load_balancing.enabled
        ? { groups: this.#watch.metrics, alerts: this.#watch.alerts.totals }
        : null,
    });
    return new MetricsServer({ host: server.metrics_host, port: server.metrics_port }, metrics, logger);
  }

  #makeRest(): RestServer {
    const { server, region } = this.#config;
    const { clock, logger, version = DEVELOPMENT } = this.#deps;
    const host = server.api_host === '' ? server.host : server.api_host;
    return new RestServer(
      { host, port: server.api_port },
      {
        backend: this.#backend,
        tunnels: this.#tunnels,
        groups: this.#tunnels.groups,
        feed: this.#watch.feed,
        closeTunnel: (tunnelId, fault) => this.#control?.closeTunnel(tunnelId, fault) ?? false,
        captures: new CaptureDesk({
          store: this.#captures,
          tunnels: this.#tunnels,
          replays: new Replays({ store: this.#captures, clock, http: this.#http }),
        }),
        status: () => ({
          sessions: this.#control?.figures.sessions ?? 0,
          tunnels: this.#tunnels.size,
          uptime_secs: (clock.monotonic() - this.#startedAt) / 1000,
          draining: this.#control?.isDraining ?? false,
        }),
        region,
        version,
        authFailures: this.#failures,
        trustedProxies: server.trusted_proxies,
        newRequestId: () => randomId('req'),
        logger,
      },
    );
  }
}
