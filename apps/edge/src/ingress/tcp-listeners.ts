// The public ports of tcp tunnels: one listener each. It accepts and hands over; closing it leaves accepted connections alone.
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { Fault } from '@tunnel/errors';
import { LIMITS } from '@tunnel/protocol';
import type { Logger } from '@tunnel/runtime';
import type { Tunnel } from '../pool/tunnel.ts';
import type { Relay } from '../relay/relay.ts';

interface TcpListenersOptions {
  readonly host: string;
  readonly tunnelOn: (port: number) => Tunnel | undefined;
  readonly relay: Relay;
  readonly logger: Logger;
}

const SERVER_OPTIONS = {
  allowHalfOpen: true,
  noDelay: true,
  // Nothing is read before the relay has put its own reads in place.
  pauseOnConnect: true,
  // A visitor that vanished without a word is found by the kernel; no timer of ours.
  keepAlive: true,
  keepAliveInitialDelay: LIMITS.VISITOR_KEEPALIVE_MS,
} as const;

export class TcpListeners {
  readonly #options: TcpListenersOptions;
  readonly #servers = new Map<number, Server>();

  constructor(options: TcpListenersOptions) {
    this.#options = options;
  }

  /** Live connections of all ports, closed ones included. */
  get connections(): number {
    return this.#options.relay.connections;
  }

  /** 'taken': another program, or another tunnel, holds the port. */
  async listen(port: number): Promise<'listening' | 'taken'> {
    if (this.#servers.has(port)) return 'taken';
    const server = this.#createServer(port);
    // From before the bind, so that two calls at once do not both try.
    this.#servers.set(port, server);
    try {
      server.listen({ host: this.#options.host, port, backlog: LIMITS.VISITOR_BACKLOG });
      await once(server, 'listening');
    } catch (error) {
      this.#servers.delete(port);
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return 'taken';
      throw toFault(error, this.#options.host, port);
    }
    // close() came while the port was being opened.
    if (this.#servers.get(port) !== server) {
      server.close();
      return 'taken';
    }
    server.on('error', (error) =>
      this.#options.logger.warn({ port, err: error }, 'a connection could not be accepted'),
    );
    return 'listening';
  }

  /** The port is free when this settles. Connections live on, so their end is not waited for. */
  async close(port: number): Promise<void> {
    const server = this.#servers.get(port);
    this.#servers.delete(port);
    server?.close();
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#servers.keys()].map((port) => this.close(port)));
  }

  resetConnections(): void {
    this.#options.relay.resetAll();
  }

  /** Settles when the last connection is over. */
  whenIdle(): Promise<void> {
    return this.#options.relay.whenIdle();
  }

  #createServer(port: number): Server {
    const { tunnelOn, relay } = this.#options;
    return createServer(SERVER_OPTIONS, (socket) => {
      const tunnel = tunnelOn(port);
      if (tunnel === undefined) relay.turnAway(socket, port);
      else relay.carry(socket, tunnel);
    });
  }
}

const toFault = (error: unknown, host: string, port: number): Fault => {
  const { code, message } = error as NodeJS.ErrnoException;
  const values = { host, port, reason: code ?? message, key: '[limits] tcp_port_range' };
  return new Fault('CONFIG_PORT_DENIED', values, { cause: error });
};
