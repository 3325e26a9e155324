// Public ports of udp tunnels, with a socket each, bound as long as the port is leased. A port stays bound while its client is
// disconnected, so that no other program can take it, visitors do not get an ICMP error, and flows continue after the client reconnects.
import { networkInterfaces } from 'node:os';
import { Fault } from '@tunnel/errors';
import type { ConnectionGate } from '@tunnel/http-shell';
import type { DatagramDrop } from '@tunnel/protocol';
import { type LoopFacts } from '@tunnel/rules/flows';
import { readHostPort } from '@tunnel/rules/net';
import { type Clock, type Logger, LogLimiter, type Timer } from '@tunnel/runtime';
import type { Tunnel } from '../../routing/tunnel.ts';
import { UdpPort, type UdpPortOptions } from './udp-port.ts';
import { SendBlocks, UdpSocket } from './udp-socket.ts';
import { addDrops, type DropCounts, type UdpTotals } from './udp-totals.ts';

/** Interval at which idle flows are expired. A single timer serves all ports. */
const UDP_TICK_MS = 1000;
/** Interval at which the machine's addresses are refreshed. A datagram from one of the addresses may be a loop. */
const UDP_OWN_ADDRESSES_MS = 10_000;

interface Listener {
  readonly port: UdpPort;
  /** Account charged for the UDP socket's file descriptor. */
  account: string;
}

export interface UdpListenersOptions extends Omit<UdpPortOptions, 'loopFacts' | 'openings'> {
  readonly host: string;
  readonly range: LoopFacts['range'];
  /** Returns the UDP ports used between client and edge. Empty if not open. */
  readonly pathPorts: () => readonly number[];
  readonly gate: Pick<ConnectionGate, 'openPort' | 'closePort'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class UdpListeners {
  readonly #options: UdpListenersOptions;
  readonly #log: LogLimiter;
  readonly #parts: UdpPortOptions;
  #loopFacts: LoopFacts;
  readonly #blocks = new SendBlocks();
  readonly #listeners = new Map<number, Listener>();
  /** UDP sockets that are being bound or closed, by port. */
  readonly #busy = new Map<number, Promise<unknown>>();
  #loopFactsAtMs = Number.NEGATIVE_INFINITY;
  #ticking: Timer | null = null;
  #isDraining = false;
  #isBufferLogged = false;
  #idleWaiters: (() => void)[] = [];

  constructor(options: UdpListenersOptions) {
    this.#options = options;
    this.#log = new LogLimiter(options.logger, () => options.clock.monotonic());
    this.#parts = { ...options, loopFacts: () => this.#loopFacts, openings: new WeakMap() };
    this.#loopFacts = { ownAddresses: new Set(), range: options.range, pathPorts: [] };
  }

  /** Open UDP flows of all ports. */
  get connections(): number {
    return this.totals.flows;
  }

  /** Dropped datagrams of all ports since the start, by reason. */
  get dropped(): DropCounts {
    const sum = { ...this.totals.droppedBefore };
    for (const { port } of this.#listeners.values()) addDrops(sum, port.dropped);
    return sum;
  }

  get totals(): UdpTotals {
    return this.#options.totals;
  }

  /** Returns flows and drops of the tunnel on a port, or undefined if the port is not bound. */
  at(port: number): Pick<UdpPort, 'flows' | 'flowCount' | 'dropped'> | undefined {
    return this.#listeners.get(port)?.port;
  }

  /** Records datagrams that a tunnel's client reports as not delivered. */
  reported(
    { assignedPort, tunnelId }: Pick<Tunnel, 'assignedPort' | 'tunnelId'>,
    drops: readonly DatagramDrop[],
  ): void {
    const on = assignedPort === null ? undefined : this.#listeners.get(assignedPort)?.port;
    on?.reported(
      tunnelId,
      drops.map(({ visitor, ...drop }) => ({ ...drop, ...addressOf(visitor) })),
    );
  }

  /** Binds a port. Returns 'taken' if another program or tunnel holds the port. */
  async listen(port: number, account: string): Promise<'listening' | 'taken'> {
    await this.#busy.get(port)?.catch(() => {});
    const held = this.#listeners.get(port);
    if (held !== undefined) return this.#reopen(held, account);
    if (this.#busy.has(port)) return 'taken';
    const { host, gate } = this.#options;
    gate.openPort(account);
    const binding = UdpSocket.bind(host, port, this.#blocks);
    this.#busy.set(port, binding);
    try {
      this.#opened(port, await binding, account);
      return 'listening';
    } catch (error) {
      gate.closePort(account);
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return 'taken';
      throw toFault(error, host, port);
    } finally {
      this.#busy.delete(port);
    }
  }

  /** Gives the bound socket to the current leaseholder. The same tunnel keeps its flows. */
  #reopen(listener: Listener, account: string): 'listening' | 'taken' {
    if (listener.port.isOpen) return 'taken';
    const isOthers = listener.account !== account;
    if (isOthers) {
      this.#options.gate.openPort(account);
      this.#options.gate.closePort(listener.account);
      listener.account = account;
    }
    listener.port.open(isOthers);
    return 'listening';
  }

  #opened(number: number, socket: UdpSocket, account: string): void {
    const { clock, logger } = this.#options;
    if (!this.#isBufferLogged) {
      const { askedBytes: asked, givenBytes: given } = socket.receiveBuffer;
      logger.info({ asked_bytes: asked, given_bytes: given }, 'receive buffer of UDP ports');
      this.#isBufferLogged = true;
    }
    this.#lookAtSelf(clock.monotonic());
    const onError = (error: Error): void =>
      this.#log.log('warn', 'udp-socket', { err: error, port: number }, 'error on a UDP port');
    const port = new UdpPort(number, socket, this.#parts, { onError, onFlowOver: () => this.#tellIfIdle() });
    if (this.#isDraining) port.drain();
    this.#listeners.set(number, { port, account });
    this.#ticking ??= clock.setInterval(() => this.#tick(), UDP_TICK_MS);
  }

  /** Drops datagrams from now on. The port stays bound until free(), because its client may reconnect. */
  async close(port: number): Promise<void> {
    this.#listeners.get(port)?.port.hold();
  }

  /** Ends all flows of a public UDP port and closes its socket. */
  free(port: number): void {
    const listener = this.#listeners.get(port);
    if (listener === undefined || listener.port.isOpen) return;
    this.#unbind(port, listener);
  }

  #unbind(port: number, listener: Listener): void {
    this.#listeners.delete(port);
    if (this.#listeners.size === 0) {
      this.#ticking?.cancel();
      this.#ticking = null;
    }
    const closing = listener.port.close().finally(() => {
      this.#options.gate.closePort(listener.account);
      this.#busy.delete(port);
    });
    this.#busy.set(port, closing);
  }

  /** Stops accepting new flows when the edge stops. Replies to open flows are still sent. */
  async closeAll(): Promise<void> {
    this.#isDraining = true;
    for (const { port } of this.#listeners.values()) port.drain();
  }

  resetConnections(): void {
    for (const [port, listener] of [...this.#listeners]) this.#unbind(port, listener);
  }

  /** Resolves when no UDP flow is left. */
  whenIdle(): Promise<void> {
    if (this.connections === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve);
    });
  }

  #tellIfIdle(): void {
    if (this.#idleWaiters.length === 0 || this.connections > 0) return;
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const resolve of waiters) resolve();
  }

  #tick(): void {
    const nowMs = this.#options.clock.monotonic();
    this.#lookAtSelf(nowMs);
    for (const { port } of [...this.#listeners.values()]) {
      try {
        port.tick(nowMs);
      } catch (error) {
        this.#options.report(error, 'udp.tick');
      }
    }
  }

  /** Refreshes the machine's own IP addresses, which may change. */
  #lookAtSelf(nowMs: number): void {
    if (nowMs - this.#loopFactsAtMs < UDP_OWN_ADDRESSES_MS) return;
    this.#loopFactsAtMs = nowMs;
    const { range, pathPorts } = this.#options;
    const addresses = Object.values(networkInterfaces()).flatMap((of) => of ?? []);
    const ownAddresses = new Set(addresses.map(({ address }) => address));
    this.#loopFacts = { ownAddresses, range, pathPorts: pathPorts() };
  }
}

/** Parses a visitor's host:port. An unreadable address matches no UDP flow. */
const addressOf = (visitor: string): { address: string; port: number } => {
  const { host: address, port } = readHostPort(visitor) ?? { host: '', port: 0 };
  return { address, port };
};

const toFault = (error: unknown, host: string, port: number): Fault => {
  const { code, message } = error as NodeJS.ErrnoException;
  const values = { host, port, reason: code ?? message, key: '[limits] udp_port_range' };
  return new Fault('CONFIG_PORT_DENIED', values, { cause: error });
};
