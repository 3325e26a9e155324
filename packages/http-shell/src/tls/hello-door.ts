// Who comes to a port that speaks TLS, told by the first message before anything is done with it: a visitor's handshake, that of an authority which
// validates a name, or no TLS at all.
import type { Socket } from 'node:net';
import type { Clock } from '@tunnel/runtime';
import type { ClientHello } from './client-hello.ts';
import { HelloBytes } from './hello-bytes.ts';

/** Of those who validate a name for a certificate (RFC 8737). */
export const ALPN_CHALLENGE = 'acme-tls/1';

const HANDSHAKE_RECORD = 22;

export interface HelloDoorOptions {
  readonly clock: Clock;
  /** For the whole of the first message. */
  readonly timeoutMs: number;
  /** Each is given the socket as if nobody had read of it. */
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
      // Plain HTTP is told by its first byte. Broken TLS has nobody to talk to in words.
      if (bytes.all[0] === HANDSHAKE_RECORD) return void socket.destroy();
      giveAway(() => this.#options.onClear(socket));
    };
    const onEnd = (): void => void socket.destroy();
    const giveAway = (to: () => void): void => {
      timer.cancel();
      socket.off('data', onData).pause();
      const read = bytes.keep();
      // In a turn of its own: a stream is not given away while it is being read.
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
