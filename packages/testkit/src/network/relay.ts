// TCP relay that simulates the network between two programs: can cut or reset connections, go silent without closing, and add delay.
import { connect, type Socket } from 'node:net';
import { startTcpServer } from './tcp-servers.ts';

export interface RelayOptions {
  readonly target: { readonly host?: string; readonly port: number };
  /** Listening address of the relay. Default: 127.0.0.1. */
  readonly host?: string;
  /** Delay added to every chunk, in either direction, in milliseconds. */
  readonly delayMs?: number;
}

/** A connection through the relay, with separate controls. */
export interface RelayedConnection {
  /** First bytes sent by the visitor, which identify the visitor. Empty until the bytes arrive. */
  readonly opening: string;
  reset(): void;
  /** Makes the connection silent without closing. New connections are still relayed. */
  blackhole(): void;
  /** Resets the visitor's side only. The target gets no notice and keeps its side open. */
  lose(): void;
}

export interface Relay {
  readonly host: string;
  readonly port: number;
  readonly openConnections: number;
  readonly totalConnections: number;
  /** Open connections in the order of arrival. */
  readonly connections: readonly RelayedConnection[];
  /** Delay for further chunks. */
  delayMs: number;
  /** Closes every connection with a FIN to visitor and target. New connections are still relayed. */
  cut(): void;
  /** Resets every connection with a RST to visitor and target. New connections are still relayed. */
  resetAll(): void;
  /** Simulates a silent network: no data passes, no connection is closed, and new connections get no response. */
  blackhole(): void;
  /** Ends the silence. Data sent in the meantime arrives now. */
  restore(): void;
  close(): Promise<void>;
}

export const startRelay = async (options: RelayOptions): Promise<Relay> => {
  const links = new Set<RelayLink>();
  const lost = new Set<RelayLink>();
  let silent = false;
  let delayMs = options.delayMs ?? 0;
  const server = await startTcpServer(
    (visitor) => {
      const link = new RelayLink(visitor, options.target, () => delayMs);
      links.add(link);
      visitor.on('close', () => {
        links.delete(link);
        if (link.holdsTarget) lost.add(link);
      });
      if (!silent) link.restore();
    },
    { pauseOnConnect: true, ...(options.host === undefined ? {} : { host: options.host }) },
  );
  return {
    host: server.host,
    port: server.port,
    get openConnections() {
      return server.openConnections;
    },
    get totalConnections() {
      return server.totalConnections;
    },
    get delayMs() {
      return delayMs;
    },
    set delayMs(value: number) {
      delayMs = value;
    },
    get connections() {
      return [...links];
    },
    cut: () => links.forEach((link) => link.end('close')),
    resetAll: () => links.forEach((link) => link.end('reset')),
    blackhole: () => {
      silent = true;
      for (const link of links) link.blackhole();
    },
    restore: () => {
      silent = false;
      for (const link of links) link.restore();
    },
    close: async () => {
      for (const link of [...links, ...lost]) link.end('close');
      await server.close();
    },
  };
};

const OPENING_MAX_CHARS = 64;

class RelayLink implements RelayedConnection {
  readonly #visitor: Socket;
  readonly #target: RelayOptions['target'];
  readonly #delayMs: () => number;
  #dialled: Socket | null = null;
  #directions: RelayDirection[] = [];
  #silent = true;
  #over = false;
  #opening = '';

  constructor(visitor: Socket, target: RelayOptions['target'], delayMs: () => number) {
    this.#visitor = visitor;
    this.#target = target;
    this.#delayMs = delayMs;
    visitor.on('close', () => this.#onClosed());
    visitor.on('data', (chunk) => {
      if (this.#opening.length < OPENING_MAX_CHARS) this.#opening += chunk.toString('latin1', 0, OPENING_MAX_CHARS);
    });
    // A data listener makes the socket flow. The socket stays paused until the target connection is being opened, so that no data is
    // lost.
    visitor.pause();
  }

  get opening(): string {
    return this.#opening;
  }

  /** Whether the target connection is still open although the visitor has gone. */
  get holdsTarget(): boolean {
    return this.#dialled !== null && !this.#dialled.destroyed;
  }

  reset(): void {
    this.end('reset');
  }

  lose(): void {
    this.blackhole();
    this.#visitor.resetAndDestroy();
  }

  blackhole(): void {
    this.#silent = true;
    for (const direction of this.#directions) direction.freeze();
  }

  restore(): void {
    this.#silent = false;
    if (this.#over) this.end('reset');
    else if (this.#dialled === null) this.#dial();
    for (const direction of this.#directions) direction.thaw();
  }

  end(how: 'close' | 'reset'): void {
    this.#over = true;
    for (const direction of this.#directions) direction.stop();
    for (const socket of [this.#visitor, this.#dialled]) {
      if (how === 'reset') socket?.resetAndDestroy();
      else socket?.destroy();
    }
  }

  #dial(): void {
    const { host = '127.0.0.1', port } = this.#target;
    const dialled = connect({ host, port, allowHalfOpen: true, noDelay: true });
    this.#dialled = dialled;
    dialled.on('error', () => {});
    dialled.on('close', () => this.#onClosed());
    this.#directions = [
      new RelayDirection(this.#visitor, dialled, this.#delayMs),
      new RelayDirection(dialled, this.#visitor, this.#delayMs),
    ];
    this.#visitor.resume();
  }

  /**
   * Handles the end of one side by resetting the opposite side. In a silent relay, the opposite side gets no notice until the relay is
   * restored.
   */
  #onClosed(): void {
    if (this.#over) return;
    this.#over = true;
    const finished = this.#visitor.readableEnded && this.#dialled?.readableEnded === true;
    if (!this.#silent && !finished) this.end('reset');
  }
}

// ---- one direction of a link: chunks wait for the delay; while frozen, nothing passes, not even a FIN ----

/** Maximum bytes delayed in one direction, like data in flight on a long link. Above the limit, the sender is paused. */
const IN_FLIGHT_MAX_BYTES = 4 * 1024 * 1024;

interface InFlight {
  readonly dueAt: number;
  /** Bytes to send, or null for the FIN. */
  readonly chunk: Buffer | null;
}

class RelayDirection {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #delayMs: () => number;
  readonly #queue: InFlight[] = [];
  #queuedBytes = 0;
  #timer: NodeJS.Timeout | null = null;
  #frozen = false;
  #blocked = false;

  constructor(from: Socket, to: Socket, delayMs: () => number) {
    this.#from = from;
    this.#to = to;
    this.#delayMs = delayMs;
    from.on('data', (chunk) => this.#take(chunk));
    from.on('end', () => this.#take(null));
    to.on('drain', () => {
      this.#blocked = false;
      this.#run();
    });
  }

  freeze(): void {
    this.#frozen = true;
    this.#from.pause();
  }

  thaw(): void {
    this.#frozen = false;
    this.#run();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#queue.length = 0;
  }

  #take(chunk: Buffer | null): void {
    this.#queue.push({ dueAt: performance.now() + this.#delayMs(), chunk });
    this.#queuedBytes += chunk?.length ?? 0;
    this.#run();
  }

  #run(): void {
    if (this.#frozen) return;
    while (!this.#blocked) {
      const first = this.#queue[0];
      if (first === undefined) break;
      const waitMs = first.dueAt - performance.now();
      if (waitMs > 0) {
        this.#timer ??= setTimeout(() => this.#onTimer(), waitMs);
        break;
      }
      this.#queue.shift();
      this.#pass(first.chunk);
    }
    if (this.#blocked || this.#queuedBytes > IN_FLIGHT_MAX_BYTES) this.#from.pause();
    else this.#from.resume();
  }

  #pass(chunk: Buffer | null): void {
    if (chunk === null) {
      this.#to.end();
      return;
    }
    this.#queuedBytes -= chunk.length;
    if (!this.#to.destroyed && !this.#to.write(chunk)) this.#blocked = true;
  }

  #onTimer(): void {
    this.#timer = null;
    this.#run();
  }
}
