// A public port for HTTP without TLS: it accepts and hands over; closing it leaves accepted connections alone.
import { createServer, type Server } from 'node:net';
import { type ListenOn, listenOrFault } from '@tunnel/http-shell';
import { LIMITS } from '@tunnel/protocol';
import type { Logger } from '@tunnel/runtime';
import type { HttpIngress } from './http-ingress.ts';

export class HttpPort {
  readonly #server: Server;
  readonly #on: ListenOn;
  #address: { host: string; port: number } | undefined;

  constructor(on: ListenOn, ingress: Pick<HttpIngress, 'accept'>, logger: Logger) {
    this.#on = on;
    this.#server = createServer(
      {
        allowHalfOpen: true,
        noDelay: true,
        // Nothing is read before the ingress has put its own reads in place.
        pauseOnConnect: true,
        keepAlive: true,
        keepAliveInitialDelay: LIMITS.VISITOR_KEEPALIVE_MS,
      },
      (socket) => ingress.accept(socket, 'http'),
    );
    this.#server.on('error', (error) => {
      if (this.#address !== undefined) logger.warn({ err: error }, 'a connection could not be accepted');
    });
  }

  get address(): { host: string; port: number } {
    if (this.#address === undefined) throw new Error(`${this.#on.key} is not open`);
    return this.#address;
  }

  async start(): Promise<void> {
    this.#address = await listenOrFault(this.#server, this.#on, { backlog: LIMITS.VISITOR_BACKLOG });
  }

  stop(): void {
    if (this.#server.listening) this.#server.close();
  }
}
