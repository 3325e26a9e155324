// Public ports of tcp tunnels and groups, with a listener each. Listeners accept connections and hand them over; closing a listener does
// not affect accepted connections.
import { once } from 'node:events';
import type { Server } from 'node:net';
import { Fault } from '@tunnel/errors';
import type { ConnectionGate } from '@tunnel/http-shell';
import { acceptingServer } from '@tunnel/mux';
import { EDGE_LIMITS } from '../../limits.ts';
import type { Route } from '../../routing/registry.ts';
import type { Relay } from './relay.ts';
import type { RelayTotals } from './relay-totals.ts';

interface Listener {
  readonly server: Server;
  readonly opened: Promise<unknown>;
  /** Account charged for the listener's file descriptor. Null after release. */
  account: string | null;
}

interface TcpListenersOptions {
  readonly host: string;
  readonly routeOn: (port: number) => Route | undefined;
  readonly relay: Pick<
    Relay,
    'carry' | 'turnAway' | 'connections' | 'totals' | 'drain' | 'resetAll' | 'whenIdle' | 'report'
  >;
  readonly gate: ConnectionGate;
}

export class TcpListeners {
  readonly #options: TcpListenersOptions;
  readonly #listeners = new Map<number, Listener>();

  constructor(options: TcpListenersOptions) {
    this.#options = options;
  }

  /** Open connections at public TCP ports, including connections of closed ports. */
  get connections(): number {
    return this.#options.relay.connections;
  }

  get totals(): RelayTotals {
    return this.#options.relay.totals;
  }

  /** Opens a port. Returns 'taken' if another program or tunnel holds the port. */
  async listen(port: number, account: string): Promise<'listening' | 'taken'> {
    if (this.#listeners.has(port)) return 'taken';
    const { gate } = this.#options;
    gate.openPort(account);
    const server = this.#createServer(port);
    const opened = once(server, 'listening');
    const listener: Listener = { server, opened, account };
    // The listener is registered before the bind, so that concurrent calls cannot bind the same port.
    this.#listeners.set(port, listener);
    server.listen({ host: this.#options.host, port, backlog: EDGE_LIMITS.VISITOR_BACKLOG });
    try {
      await opened;
    } catch (error) {
      if (this.#listeners.get(port) === listener) this.#listeners.delete(port);
      this.#uncount(listener);
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return 'taken';
      throw toFault(error, this.#options.host, port);
    }
    server.on('error', (error) => this.#options.gate.onAcceptError(error));
    // close() may have been called while the TCP port was being opened.
    return this.#listeners.get(port) === listener ? 'listening' : 'taken';
  }

  /** Closes a port. Resolves when the port is free, without waiting for open connections. */
  async close(port: number): Promise<void> {
    const listener = this.#listeners.get(port);
    if (listener === undefined) return;
    this.#listeners.delete(port);
    // A server closed while opening would open anyway, so the opening is awaited.
    await listener.opened.catch(() => {});
    listener.server.close();
    // The account's file descriptor is released here, because the server's 'close' event waits for the last visitor.
    this.#uncount(listener);
  }

  #uncount(listener: Listener): void {
    if (listener.account !== null) this.#options.gate.closePort(listener.account);
    listener.account = null;
  }

  /** Closes all ports when the edge stops. Visitors without a serving member are reset. */
  async closeAll(): Promise<void> {
    this.#options.relay.drain();
    await Promise.all([...this.#listeners.keys()].map((port) => this.close(port)));
  }

  resetConnections(): void {
    this.#options.relay.resetAll();
  }

  /** Resolves when the last connection at a public TCP port has closed. */
  whenIdle(): Promise<void> {
    return this.#options.relay.whenIdle();
  }

  #createServer(port: number): Server {
    const { routeOn, relay, gate } = this.#options;
    return acceptingServer({
      keepAliveMs: EDGE_LIMITS.VISITOR_KEEPALIVE_MS,
      report: relay.report,
      where: 'tcp.connection',
      take: (socket) => {
        const accepted = gate.accept('tcp', socket);
        if (accepted === null) return;
        const route = routeOn(port);
        if (route === undefined) relay.turnAway(socket, port);
        else relay.carry(socket, accepted, route);
      },
    });
  }
}

const toFault = (error: unknown, host: string, port: number): Fault => {
  const { code, message } = error as NodeJS.ErrnoException;
  const values = { host, port, reason: code ?? message, key: '[limits] tcp_port_range' };
  return new Fault('CONFIG_PORT_DENIED', values, { cause: error });
};
