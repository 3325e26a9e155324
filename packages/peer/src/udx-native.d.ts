// What we use of udx-native, which brings no types of its own.
declare module 'udx-native' {
  import type { EventEmitter } from 'node:events';

  interface UdxAddress {
    readonly host: string;
    readonly family: number;
    readonly port: number;
  }

  interface UdxSocket extends EventEmitter {
    bind(port: number, host?: string): void;
    address(): UdxAddress | null;
    /** Resolves when the kernel has it (true) or did not take it (false). */
    send(bytes: Buffer, port: number, host: string): Promise<boolean>;
    close(): Promise<void>;
  }

  interface UdxStream extends EventEmitter {
    connect(socket: UdxSocket, remoteId: number, port: number, host: string): void;
    write(bytes: Buffer): boolean;
    end(): void;
    destroy(): void;
  }

  export default class UDX {
    createSocket(options?: { readonly ipv6Only?: boolean }): UdxSocket;
    createStream(id: number): UdxStream;
  }
}
