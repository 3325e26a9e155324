// Classifies connections to a TLS port by their first message, before any work is done: a TLS handshake, which may be a certificate
// validation by an authority, or an unencrypted request.
import type { Socket } from 'node:net';
import type { Clock } from '@tunnel/runtime';
import type { ClientHello } from './client-hello.ts';
import { HelloBytes } from './hello-bytes.ts';

/** ALPN protocol of authorities that validate a name for a certificate (RFC 8737). */
export const ALPN_CHALLENGE = 'acme-tls/1';

const HANDSHAKE_RECORD = 22;

export interface HelloDoorOptions {
  readonly clock: Clock;
  /** Timeout for receiving the whole first message. */
  readonly timeoutMs: number;
  /** Called for a TLS handshake. As for onClear, the bytes read so far were put back into the socket. */
  readonly onHello: (socket: Socket, hello: ClientHello) => void;
  readonly onClear: (socket: Socket) => void;
}

export class HelloDoor {
  readonly #options: HelloDoorOptions;

  constructor(options: HelloDoorOptions) {
    this.#options = options;
  }

  take(socket: Socket): void {
    const { clock, timeoutMs } = this.#options;
    const bytes = new HelloBytes();
    const timer = clock.setTimeout(() => socket.destroy(), timeoutMs);
    const onData = (chunk: Buffer): void => {
      const reading = bytes.take(chunk, 0, chunk.length);
      if (reading.kind === 'more') return;
      if (reading.kind === 'hello') return giveAway(() => this.#options.onHello(socket, reading.hello));
      // Plain HTTP is recognized by the first byte. A malformed TLS handshake is closed, because the peer could not read a response.
      if (bytes.all[0] === HANDSHAKE_RECORD) return void socket.destroy();
      giveAway(() => this.#options.onClear(socket));
    };
    const onEnd = (): void => void socket.destroy();
    const giveAway = (to: () => void): void => {
      timer.cancel();
      socket.off('data', onData).pause();
      const read = bytes.keep();
      // Hand the socket over in a separate turn, because a stream must not be handed over while it is being read.
      setImmediate(() => {
        socket.off('end', onEnd).off('error', onError);
        if (socket.destroyed) return;
        socket.unshift(read);
        to();
      });
    };
    const onError = (): void => {};
    socket.on('error', onError).on('end', onEnd).on('data', onData);
    socket.once('close', () => timer.cancel());
  }
}
