// What we use of udx-native, which brings no types of its own.
import type { EventEmitter } from 'node:events';

export interface UdxSocket extends EventEmitter {
  bind(port: number, host?: string): void;
  address(): { readonly host: string; readonly family: number; readonly port: number } | null;
  /** Resolves when the kernel has it (true) or did not take it (false). */
  send(bytes: Buffer, port: number, host: string): Promise<boolean>;
  /** Above its own bound the kernel gives less, without a word. */
  setRecvBufferSize(bytes: number): void;
  close(): Promise<void>;
}

export interface UdxStream extends EventEmitter {
  connect(socket: UdxSocket, remoteId: number, port: number, host: string): void;
  /** false: wait for `drain`. The memory is in use until the other side has it. */
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
