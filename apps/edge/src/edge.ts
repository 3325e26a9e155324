// The composition root of the edge: makes every part, joins them, starts and stops them in order.
import { Lifecycle, randomToken, Secret, type ServerConfig } from '@tunnel/runtime';
import type { MetricsServer } from './admin/metrics-server.ts';
import type { RestServer } from './admin/rest-server.ts';
import type { Backend } from './backend/backend.ts';
import { AuthFailures } from './control/auth-failures.ts';
import { ControlSide } from './edge-parts/control-side.ts';
import { describeReach } from './edge-parts/describe-reach.ts';
import { DEVELOPMENT, type EdgeDeps } from './edge-parts/edge-deps.ts';
import { makeBackend } from './edge-parts/make-backend.ts';
import { makeMetricsServer } from './edge-parts/make-metrics-server.ts';
import { makeRest } from './edge-parts/make-rest.ts';
import { PublicSide } from './edge-parts/public-side.ts';
import { GroupWatch } from './group-watch.ts';
import { Certificate } from './ingress/tls/certificate.ts';

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
  /** A request to the REST without a socket: how a platform in this process asks. */
  fetchApi(request: Request): Promise<Response>;
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

export const createEdge = (config: ServerConfig, deps: EdgeDeps): Edge => new ComposedEdge(config, deps);

class ComposedEdge implements Edge {
  readonly #config: ServerConfig;
  readonly #deps: EdgeDeps;
  readonly #backend: Backend;
  readonly #publicSide: PublicSide;
  readonly #watch: GroupWatch;
  readonly #control: ControlSide;
  readonly #metricsServer: MetricsServer;
  readonly #rest: RestServer;
  readonly #certificate: Certificate;
  readonly #life: Lifecycle;
  #isRestOpen = false;
  #isOpen = false;
  #startedAt = 0;
  #drainMs = 0;

  constructor(config: ServerConfig, deps: EdgeDeps) {
    const { clock, logger } = deps;
    this.#config = config;
    this.#deps = deps;
    const platformSecret = new Secret(randomToken());
    const shown = {
      apiSecret: platformSecret,
      apiUrl: () => this.#apiUrl(),
      reach: () => (this.#isOpen ? describeReach(config, this.addresses) : undefined),
    };
    const backend = makeBackend(config, deps, shown);
    const failures = new AuthFailures({ clock, perMinute: config.limits.auth_failures_per_minute });
    const publicSide = new PublicSide(config, deps, () => backend.streamEnded());
    const watch = new GroupWatch(config, { clock, logger, version: deps.version ?? DEVELOPMENT });
    backend.onRevoked((revocation) => watch.feed.revoked(revocation));
    const control = new ControlSide(config, deps, { backend, failures, publicSide, watch });
    const uptimeMs = () => clock.monotonic() - this.#startedAt;
    this.#backend = backend;
    this.#publicSide = publicSide;
    this.#watch = watch;
    this.#control = control;
    this.#certificate = this.#makeCertificate();
    this.#metricsServer = makeMetricsServer(config, { control, publicSide, failures, watch, logger });
    const restParts = { backend, platformSecret, control, publicSide, failures, watch, uptimeMs };
    this.#rest = makeRest(config, deps, restParts);
    this.#life = this.#makeLife();
  }

  get addresses(): Edge['addresses'] {
    const { ports } = this.#publicSide;
    return {
      control: this.#control.address,
      http: ports.http,
      https: ports.https,
      api: this.#rest.address,
      metrics: this.#metricsServer.address,
    };
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
    this.#watch.feed.close();
    await this.#life.stop({ deadlineMs: drainMs + STOP_GRACE_MS });
  }

  stopNow(): void {
    this.#control.cut();
    this.#publicSide.cut();
    void this.stop({ drainMs: 0 });
  }

  fetchApi(request: Request): Promise<Response> {
    return this.#rest.fetch(request);
  }

  /** Started in this order, stopped in the reverse one. */
  #makeLife(): Lifecycle {
    const life = new Lifecycle({ logger: this.#deps.logger, clock: this.#deps.clock });
    const { captures } = this.#publicSide;
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
      start: () => this.#publicSide.openHttp(this.#certificate.current),
      stop: async () => this.#publicSide.closeHttp(),
    });
    // Last: an open control port is the promise that a client may come. First to stop: the drain is its stop.
    life.add({
      name: 'control plane',
      start: () => this.#control.open(this.#certificate.current),
      stop: () => this.#drainAndEnd(),
    });
    return life;
  }

  async #openRest(): Promise<void> {
    await this.#rest.start();
    this.#isRestOpen = true;
  }

  #apiUrl(): string {
    const { api_url } = this.#config.server;
    if (api_url !== '' || !this.#isRestOpen) return api_url;
    const { host, port } = this.#rest.address;
    return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  }

  #makeCertificate(): Certificate {
    const { clock, logger } = this.#deps;
    return new Certificate({
      paths: this.#config.tls,
      clock,
      logger,
      onRenewed: (files) => {
        this.#publicSide.ports.renew(files);
        this.#control.renewCertificate(files);
      },
    });
  }

  async #drainAndEnd(): Promise<void> {
    // Clients first: they look for another edge while their connections here still run.
    this.#control.drain(this.#drainMs);
    await this.#publicSide.drain(this.#drainMs);
    await this.#control.end();
    this.#watch.alerts.close();
  }
}
