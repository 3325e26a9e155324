// A network in memory for peers: sockets with addresses, datagrams that are delayed, lost, blocked one way or cut off, and beside them the
// reliable connections of PeerTransport, which wait while the way is cut. Time is the clock's, chance is a seed's.
import { type ByteDuplex, ByteQueue, type ByteReader } from '@tunnel/mux';
import type { ConnectionIds, PeerAddress, PeerSocket, PeerSocketHandlers, PeerTransport } from '@tunnel/peer';
import type { StreamReason } from '@tunnel/protocol';
import { type Clock, systemClock } from '@tunnel/runtime';
import { seededRandom } from '../chance/deterministic-bytes.ts';

/** Written and not yet there: over it a writer has to wait. */
const IN_FLIGHT_BYTES = 256 * 1024;
const UNREAD_MAX_BYTES = 4 * 1024 * 1024;

export class MemoryNetwork {
  /** Each way, of everything. */
  delayMs = 0;
  /** Of datagrams, 0 to 1. What is reliable is not lost, but late. */
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

  /** The transport of the machine with this address. */
  transport(host: string): PeerTransport {
    return {
      open: (handlers) => {
        const socket = new MemorySocket(this, { host, port: this.#nextPort++ }, handlers);
        this.#sockets.set(keyOf(socket.address), socket);
        return socket;
      },
    };
  }

  /** Nothing passes from the one host to the other: one way alone. */
  block(from: string, to: string): void {
    this.#blocked.add(`${from} ${to}`);
  }

  /** Everything is open again, and what is reliable goes on. */
  restore(): void {
    this.#blocked.clear();
    for (const { from, to, act } of this.#waiting.splice(0)) this.carry(from, to, act);
  }

  cut(one: string, other: string): void {
    this.block(one, other);
    this.block(other, one);
  }

  /** A connection of this network breaks: both ends see a reset. */
  lose(connection: ByteDuplex): void {
    if (connection instanceof MemoryConnection) connection.lose();
  }

  close(address: PeerAddress): void {
    this.#sockets.delete(keyOf(address));
  }

  socketAt(address: PeerAddress): MemorySocket | undefined {
    return this.#sockets.get(keyOf(address));
  }

  /** A datagram: lost or blocked, or there after the delay. */
  deliver(bytes: Buffer, from: PeerAddress, to: PeerAddress): void {
    if (this.#isBlocked(from.host, to.host) || this.#random() < this.lossShare) return;
    this.#later(() => this.socketAt(to)?.receive(bytes, from));
  }

  /** Something reliable: it waits while the way is blocked. */
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
    // Whoever was quicker has waited for this one.
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
  /** In order: what has not arrived yet. */
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
    // As a packet without an answer: a way that is cut loses it.
    this.#network.carry(this.#from, this.#to.host, () => this.#other()?.receive(reason));
  }

  lose(): void {
    const lost = { code: 'peer-reset', text: 'the network broke' } as const;
    this.#other()?.receive(lost);
    this.receive(lost);
  }

  /** Hands one parcel after another to the other end, while there is one. */
  pump(): void {
    if (this.#isPumping || this.#parcels.length === 0 || this.#other() === undefined) return;
    this.#isPumping = true;
    this.#network.carry(this.#from, this.#to.host, () => {
      this.#isPumping = false;
      const other = this.#other();
      if (this.#over || other === undefined) return;
      // All that was sent meanwhile arrives together, as packets do.
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
