// Where visitors come in: the tunnels, their listeners, HTTP, relay and captures; opened together, drained together.
import { randomInt } from 'node:crypto';
import { ConnectionCounts } from '@tunnel/core';
import type { Clock, Logger, ServerConfig } from '@tunnel/runtime';
import { CaptureStore } from '../capture/capture-store.ts';
import { HttpErrorFallback } from '../ingress/http/http-error-fallback.ts';
import { HttpIngress } from '../ingress/http/http-ingress.ts';
import { HttpListeners } from '../ingress/http/http-listeners.ts';
import { Relay } from '../ingress/tcp/relay.ts';
import { TcpListeners } from '../ingress/tcp/tcp-listeners.ts';
import type { TlsFiles } from '../ingress/tls/tls-files.ts';
import { Balancer } from '../routing/balancer.ts';
import { NameRegistry } from '../routing/endpoints.ts';
import { HttpRouter } from '../routing/http-router.ts';
import { Registry } from '../routing/registry.ts';
import type { EdgeDeps } from './edge-deps.ts';

/** Names that the edge chooses must not be guessed: no ordinary random number will do. */
const secureRandom = (): number => randomInt(2 ** 32) / 2 ** 32;

export class PublicSide {
  readonly captures: CaptureStore;
  readonly tunnels: Registry;
  readonly relay: Relay;
  readonly listeners: TcpListeners;
  readonly names: NameRegistry;
  readonly http: HttpIngress;
  readonly ports: HttpListeners;
  readonly #clock: Clock;
  readonly #logger: Logger;

  constructor(config: ServerConfig, { clock, logger, random }: EdgeDeps, onStreamEnd: () => void) {
    const { limits, server } = config;
    this.#clock = clock;
    this.#logger = logger;
    this.captures = new CaptureStore({ ...config.capture, clock, runId: randomInt(36 ** 5).toString(36) });
    this.tunnels = new Registry(this.captures);
    const counts = new ConnectionCounts({
      perTunnel: limits.connections_per_tunnel,
      perAddress: limits.connections_per_address,
    });
    const balancer = new Balancer({ counts, random: random ?? Math.random });
    this.relay = new Relay({
      balancer,
      answerUnserved: (visitor, fault, onOver) => new HttpErrorFallback(visitor, fault, clock, onOver),
      logger,
      clock,
      onStreamEnd,
    });
    const routeOn = (port: number) => this.tunnels.byPort(port);
    this.listeners = new TcpListeners({ host: server.host, routeOn, relay: this.relay, logger });
    this.names = new NameRegistry({ clock, random: random ?? secureRandom });
    this.http = new HttpIngress({
      clock,
      router: new HttpRouter({
        domain: server.domain,
        tunnels: this.tunnels,
        names: this.names,
        trustedProxies: server.trusted_proxies,
        redirectPort: () => this.ports.redirectPort,
      }),
      balancer,
      isListed: (service) => this.tunnels.has(service),
      captures: this.captures,
      headTimeoutMs: server.head_timeout_secs * 1000,
      firstByteTimeoutMs: server.first_byte_timeout_secs * 1000,
      onStreamEnd,
    });
    this.ports = new HttpListeners(server, this.http, logger);
  }

  async openHttp(tls: TlsFiles | null): Promise<void> {
    try {
      await this.ports.start(tls);
    } catch (error) {
      this.ports.stop();
      throw error;
    }
    this.http.start();
  }

  closeHttp(): void {
    this.ports.stop();
    this.http.stop();
  }

  /** No visitor comes any more; those who are there may finish for `drainMs`. */
  async drain(drainMs: number): Promise<void> {
    await this.listeners.closeAll();
    this.ports.stop();
    this.http.drain();
    const isIdle = await this.#idleWithin(drainMs);
    const connections = this.listeners.connections + this.http.connections;
    if (!isIdle) this.#logger.warn({ connections }, 'connections did not finish in time');
    this.listeners.resetConnections();
    this.http.stop();
  }

  cut(): void {
    void this.listeners.closeAll();
    this.listeners.resetConnections();
    this.closeHttp();
  }

  #idleWithin(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = this.#clock.setTimeout(() => resolve(false), ms);
      void Promise.all([this.listeners.whenIdle(), this.http.whenIdle()]).then(() => {
        timer.cancel();
        resolve(true);
      });
    });
  }
}
