// In-memory network for peers: sockets with addresses, and datagrams that can be delayed, lost, blocked in one direction or cut off. Also
// carries the reliable connections of PeerTransport, which wait while the path is cut. Time comes from a clock, randomness from a seed.
import { type ByteDuplex, ByteQueue, type ByteReader } from '@tunnel/mux';
import type { ConnectionIds, PeerAddress, PeerSocket, PeerSocketHandlers, PeerTransport } from '@tunnel/peer';
import type { StreamReason } from '@tunnel/protocol';
import { type Clock, systemClock } from '@tunnel/runtime';
import { seededRandom } from '../chance/deterministic-bytes.ts';

/** Maximum bytes sent but not yet received. Above the limit, the writer has to wait. */
const IN_FLIGHT_BYTES = 256 * 1024;
const UNREAD_MAX_BYTES = 4 * 1024 * 1024;

export class MemoryNetwork {
  /** Delay of all traffic, in either direction, in milliseconds. */
  delayMs = 0;
  /** Share of datagrams that get lost, from 0 to 1. Reliable data is delayed but never lost. */
  lossShare = 0;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #sockets = new Map<string, MemorySocket>();
  readonly #blocked = new Set<string>();
  readonly #waiting: { from: string; to: string; act: () => void }[] = [];
  #nextPort = 40_000;

  constructor(clock: Clock = systemClock, seed = 1) {
    this.#clock = clock;
    this.#random = seededRandom(seed);
  }

  /** Returns the transport of the host with the given address. */
  transport(host: string): PeerTransport {
    return {
      open: (handlers) => {
        const socket = new MemorySocket(this, { host, port: this.#nextPort++ }, handlers);
        this.#sockets.set(keyOf(socket.address), socket);
        return socket;
      },
    };
  }

  /** Blocks all traffic from one host to a second host. Traffic in the opposite direction still passes. */
  block(from: string, to: string): void {
    this.#blocked.add(`${from} ${to}`);
  }

  /** Ends all blocks, and delivers the reliable data that has waited. */
  restore(): void {
    this.#blocked.clear();
    for (const { from, to, act } of this.#waiting.splice(0)) this.carry(from, to, act);
  }

  cut(one: string, other: string): void {
    this.block(one, other);
    this.block(other, one);
  }

  /** Breaks a connection of the network. The two ends of the connection see a reset. */
  lose(connection: ByteDuplex): void {
    if (connection instanceof MemoryConnection) connection.lose();
  }

  close(address: PeerAddress): void {
    this.#sockets.delete(keyOf(address));
  }

  socketAt(address: PeerAddress): MemorySocket | undefined {
    return this.#sockets.get(keyOf(address));
  }

  /** Delivers a datagram after the delay, unless the datagram is lost or blocked. */
  deliver(bytes: Buffer, from: PeerAddress, to: PeerAddress): void {
    if (this.#isBlocked(from.host, to.host) || this.#random() < this.lossShare) return;
    this.#later(() => this.socketAt(to)?.receive(bytes, from));
  }

  /** Delivers reliable data after the delay. While the path is blocked, the data waits. */
  carry(from: string, to: string, act: () => void): void {
    if (this.#isBlocked(from, to)) this.#waiting.push({ from, to, act });
    else this.#later(act);
  }

  #isBlocked(from: string, to: string): boolean {
    return this.#blocked.has(`${from} ${to}`);
  }

  #later(act: () => void): void {
    if (this.delayMs === 0) setImmediate(act);
    else this.#clock.setTimeout(act, this.delayMs);
  }
}

export class MemorySocket implements PeerSocket {
  readonly address: PeerAddress;
  readonly queuedDatagrams = 0;
  readonly #network: MemoryNetwork;
  readonly #handlers: PeerSocketHandlers;
  readonly #connections = new Map<number, MemoryConnection>();
  #closed = false;

  constructor(network: MemoryNetwork, address: PeerAddress, handlers: PeerSocketHandlers) {
    this.#network = network;
    this.address = address;
    this.#handlers = handlers;
  }

  get port(): number {
    return this.address.port;
  }

  send(bytes: Buffer, to: PeerAddress): void {
    if (!this.#closed) this.#network.deliver(bytes, this.address, to);
  }

  receive(bytes: Buffer, from: PeerAddress): void {
    if (this.#closed) return;
    try {
      this.#handlers.onDatagram(bytes, from);
    } catch (error) {
      this.#handlers.abandon(error, 'peer.datagram');
    }
  }

  connect(ids: ConnectionIds, to: PeerAddress): ByteDuplex {
    const connection = new MemoryConnection(this.#network, this.address.host, to, ids.theirs, () => {
      this.#connections.delete(ids.own);
    });
    this.#connections.set(ids.own, connection);
    // If the remote end connected earlier, its data has waited for this connection and is delivered now.
    this.#network.socketAt(to)?.connectionOf(ids.theirs)?.pump();
    return connection;
  }

  connectionOf(id: number): MemoryConnection | undefined {
    return this.#connections.get(id);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const connection of this.#connections.values()) connection.reset();
    this.#network.close(this.address);
  }
}

type Parcel = { readonly bytes: Buffer } | 'end' | StreamReason;

class MemoryConnection implements ByteDuplex {
  readonly #network: MemoryNetwork;
  readonly #from: string;
  readonly #to: PeerAddress;
  readonly #theirs: number;
  readonly #onOver: () => void;
  #reader: ByteReader | null = null;
  /** Undelivered data, in the order of sending. */
  readonly #parcels: Parcel[] = [];
  #inFlightBytes = 0;
  #isPumping = false;
  #waiting = false;
  #unread: ByteQueue | null = null;
  #isStopped = true;
  #endUnread = false;
  #hasEnded = false;
  #endAsked: (() => void) | null = null;
  #isFlushed = false;
  #over = false;

  constructor(network: MemoryNetwork, from: string, to: PeerAddress, theirs: number, onOver: () => void) {
    this.#network = network;
    this.#from = from;
    this.#to = to;
    this.#theirs = theirs;
    this.#onOver = onOver;
  }

  read(reader: ByteReader): void {
    this.#reader = reader;
    this.resume();
  }

  write(bytes: Buffer, start: number, end: number): boolean {
    if (this.#over || this.#endAsked !== null) return true;
    this.#inFlightBytes += end - start;
    this.#parcels.push({ bytes: Buffer.from(bytes.subarray(start, end)) });
    this.pump();
    this.#waiting ||= this.#inFlightBytes > IN_FLIGHT_BYTES;
    return !this.#waiting;
  }

  resume(): void {
    if (this.#over || this.#reader === null) return;
    this.#isStopped = false;
    while (this.#unread !== null && this.#unread.length > 0 && !this.#isStopped && !this.#over) {
      const bytes = this.#unread.shift(this.#unread.length);
      this.#isStopped = !this.#reader.onData(bytes, 0, bytes.length, false);
    }
    if (this.#isStopped || this.#over || !this.#endUnread) return;
    this.#endUnread = false;
    this.#end();
  }

  end(onFlushed: () => void = () => {}): void {
    if (this.#over || this.#endAsked !== null) return;
    this.#endAsked = onFlushed;
    this.#parcels.push('end');
    this.pump();
  }

  reset(reason: StreamReason = { code: 'cancelled', text: 'closed' }): void {
    if (this.#over) return;
    this.#finish();
    // Sends the reset to the remote end. While the path is blocked, the reset waits like other reliable data.
    this.#network.carry(this.#from, this.#to.host, () => this.#other()?.receive(reason));
  }

  lose(): void {
    const lost = { code: 'peer-reset', text: 'the network broke' } as const;
    this.#other()?.receive(lost);
    this.receive(lost);
  }

  /** Delivers the waiting data to the remote end, unless the remote end has not connected yet. */
  pump(): void {
    if (this.#isPumping || this.#parcels.length === 0 || this.#other() === undefined) return;
    this.#isPumping = true;
    this.#network.carry(this.#from, this.#to.host, () => {
      this.#isPumping = false;
      const other = this.#other();
      if (this.#over || other === undefined) return;
      // Data sent in the meantime arrives together, like packets.
      for (const parcel of this.#parcels.splice(0)) this.#hand(other, parcel);
      this.pump();
    });
  }

  #hand(other: MemoryConnection, parcel: Parcel): void {
    if (this.#over) return;
    other.receive(parcel);
    if (parcel === 'end') {
      this.#isFlushed = true;
      this.#endAsked?.();
      if (this.#hasEnded) this.#finish();
    } else if ('bytes' in parcel) {
      this.#inFlightBytes -= parcel.bytes.length;
      if (!this.#waiting || this.#inFlightBytes > 0) return;
      this.#waiting = false;
      if (this.#endAsked === null) this.#reader?.onDrain();
    }
  }

  receive(parcel: Parcel): void {
    if (this.#over) return;
    if (parcel === 'end') {
      if (this.#isStopped) this.#endUnread = true;
      else this.#end();
    } else if ('bytes' in parcel) this.#take(parcel.bytes);
    else {
      this.#finish();
      this.#reader?.onReset({ code: 'peer-reset', text: parcel.text });
    }
  }

  #take(bytes: Buffer): void {
    if (!this.#isStopped && this.#reader !== null) {
      this.#isStopped = !this.#reader.onData(bytes, 0, bytes.length, false);
      return;
    }
    this.#unread ??= new ByteQueue();
    this.#unread.push(bytes, 0, bytes.length);
    if (this.#unread.length <= UNREAD_MAX_BYTES) return;
    this.reset();
    this.#reader?.onReset({ code: 'peer-reset', text: 'too much is unread' });
  }

  #end(): void {
    this.#hasEnded = true;
    this.#reader?.onEnd();
    if (this.#isFlushed) this.#finish();
  }

  #finish(): void {
    this.#over = true;
    this.#onOver();
  }

  #other(): MemoryConnection | undefined {
    return this.#network.socketAt(this.#to)?.connectionOf(this.#theirs);
  }
}

const keyOf = ({ host, port }: PeerAddress): string => `${host} ${port}`;
