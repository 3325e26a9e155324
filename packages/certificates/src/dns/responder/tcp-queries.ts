// DNS queries over TCP with a length prefix of two bytes. Connections are few and short: slow, long or unread connections are closed.
import type { Socket } from 'node:net';
import { networkOf } from '@tunnel/rules/net';
import type { Clock } from '@tunnel/runtime';
import { DNS_LIMITS } from '../dns-limits.ts';

/** Maximum DNS connections over TCP. The oldest is closed for a new connection. */
const TCP_CONNECTIONS_MAX = 128;
/** Maximum DNS connections over TCP per client address. */
const TCP_CONNECTIONS_PER_ADDRESS = 8;
/** Maximum age of a DNS connection over TCP. A resolver sends one or two queries. */
const TCP_CONNECTION_MS = 10_000;
/** Maximum unread answer bytes per DNS connection. Beyond it the connection is closed. */
const TCP_UNREAD_MAX_BYTES = 64 * 1024;

export interface TcpQueriesOptions {
  readonly clock: Clock;
  /** Answers a DNS query. Returns null to close the connection without an answer. */
  readonly answer: (bytes: Buffer, address: string) => Buffer | null;
  /** Called when a client sends a message longer than any DNS query. */
  readonly onTooLong: () => void;
  /** Called for a connection that was rejected or closed for lack of slots. */
  readonly onCrowdedOut: () => void;
}

const LENGTH_BYTES = 2;
const EMPTY = Buffer.alloc(0);

export class TcpQueries {
  readonly #options: TcpQueriesOptions;
  /** Open DNS connections with their client's network, oldest first. */
  readonly #open = new Map<Socket, string>();

  constructor(options: TcpQueriesOptions) {
    this.#options = options;
  }

  accept(socket: Socket): void {
    socket.on('error', () => {});
    const address = socket.remoteAddress ?? '';
    const network = networkOf(address);
    if (this.#countOf(network) >= TCP_CONNECTIONS_PER_ADDRESS) {
      this.#options.onCrowdedOut();
      socket.resetAndDestroy();
      return;
    }
    this.#makeRoom();
    this.#open.set(socket, network);
    const timer = this.#options.clock.setTimeout(() => socket.destroy(), TCP_CONNECTION_MS);
    socket.once('close', () => {
      timer.cancel();
      this.#open.delete(socket);
    });
    this.#read(socket, address);
  }

  close(): void {
    for (const socket of this.#open.keys()) socket.destroy();
  }

  #countOf(network: string): number {
    let count = 0;
    for (const other of this.#open.values()) if (other === network) count += 1;
    return count;
  }

  #makeRoom(): void {
    const [oldest] = this.#open.keys();
    if (oldest === undefined || this.#open.size < TCP_CONNECTIONS_MAX) return;
    this.#options.onCrowdedOut();
    this.#open.delete(oldest);
    oldest.destroy();
  }

  #read(socket: Socket, address: string): void {
    // Bytes not answered yet: at most an incomplete query and the data of a single read.
    let pending: Buffer = EMPTY;
    socket.on('data', (chunk: Buffer) => {
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
      while (pending.length >= LENGTH_BYTES && !socket.destroyed) {
        const end = LENGTH_BYTES + pending.readUInt16BE(0);
        if (end - LENGTH_BYTES > DNS_LIMITS.QUERY_MAX_BYTES) {
          this.#options.onTooLong();
          socket.destroy();
          return;
        }
        if (pending.length < end) return;
        this.#answer(socket, pending.subarray(LENGTH_BYTES, end), address);
        pending = pending.subarray(end);
      }
    });
  }

  #answer(socket: Socket, query: Buffer, address: string): void {
    const answer = this.#options.answer(query, address);
    if (answer === null || socket.writableLength > TCP_UNREAD_MAX_BYTES) {
      socket.destroy();
      return;
    }
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt16BE(answer.length);
    socket.write(Buffer.concat([length, answer]));
  }
}
