// Questions over TCP, each behind its length in two bytes. Connections are few and short: what is slow, long or does not read is cut.
import type { Socket } from 'node:net';
import { networkOf } from '@tunnel/rules/net';
import type { Clock } from '@tunnel/runtime';
import { DNS_LIMITS } from '../dns-limits.ts';

/** connections at a time; the one that is open for longest gives way */
const TCP_CONNECTIONS_MAX = 128;
/** the same of one address */
const TCP_CONNECTIONS_PER_ADDRESS = 8;
/** Maximum age of a TCP connection. A resolver has one or two questions. */
const TCP_CONNECTION_MS = 10_000;
/** Bytes of unread answers of one connection; with more the connection is cut. */
const TCP_UNREAD_MAX_BYTES = 64 * 1024;

export interface TcpQueriesDeps {
  readonly clock: Clock;
  /** null: no answer, and the connection ends. */
  readonly answer: (bytes: Buffer, address: string) => Buffer | null;
  /** A message longer than any question. */
  readonly onTooLong: () => void;
  /** A connection that found no place, or gave its own to another. */
  readonly onCrowdedOut: () => void;
}

const LENGTH_BYTES = 2;
const EMPTY = Buffer.alloc(0);

export class TcpQueries {
  readonly #deps: TcpQueriesDeps;
  /** The one that is open for longest first; with whom it counts for. */
  readonly #open = new Map<Socket, string>();

  constructor(deps: TcpQueriesDeps) {
    this.#deps = deps;
  }

  accept(socket: Socket): void {
    socket.on('error', () => {});
    const address = socket.remoteAddress ?? '';
    const network = networkOf(address);
    if (this.#countOf(network) >= TCP_CONNECTIONS_PER_ADDRESS) {
      this.#deps.onCrowdedOut();
      socket.resetAndDestroy();
      return;
    }
    this.#makeRoom();
    this.#open.set(socket, network);
    const timer = this.#deps.clock.setTimeout(() => socket.destroy(), TCP_CONNECTION_MS);
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
    this.#deps.onCrowdedOut();
    this.#open.delete(oldest);
    oldest.destroy();
  }

  #read(socket: Socket, address: string): void {
    // At most one question that is not complete, and what one read brought.
    let pending: Buffer = EMPTY;
    socket.on('data', (chunk: Buffer) => {
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
      while (pending.length >= LENGTH_BYTES && !socket.destroyed) {
        const end = LENGTH_BYTES + pending.readUInt16BE(0);
        if (end - LENGTH_BYTES > DNS_LIMITS.QUERY_MAX_BYTES) {
          this.#deps.onTooLong();
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
    const answer = this.#deps.answer(query, address);
    if (answer === null || socket.writableLength > TCP_UNREAD_MAX_BYTES) {
      socket.destroy();
      return;
    }
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt16BE(answer.length);
    socket.write(Buffer.concat([length, answer]));
  }
}
