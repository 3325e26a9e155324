// Types of the parts of udx-native that we use, because the package has no type definitions.
import type { EventEmitter } from 'node:events';

export interface UdxSocket extends EventEmitter {
  bind(port: number, host?: string): void;
  address(): { readonly host: string; readonly family: number; readonly port: number } | null;
  /** Sends a datagram. Resolves to true if the kernel accepted the datagram, else false. */
  send(bytes: Buffer, port: number, host: string): Promise<boolean>;
  /** Sets the size of the socket's receive buffer. The kernel silently limits the size to its maximum. */
  setRecvBufferSize(bytes: number): void;
  close(): Promise<void>;
}

export interface UdxStream extends EventEmitter {
  connect(socket: UdxSocket, remoteId: number, port: number, host: string): void;
  /** Returns false to wait for `drain`. The memory is in use until the other side has acknowledged it. */
  write(bytes: Buffer): boolean;
  end(): void;
  destroy(): void;
}

export interface Udx {
  createSocket(): UdxSocket;
  createStream(id: number): UdxStream;
}

export interface UdxModule {
  readonly default: new () => Udx;
}
