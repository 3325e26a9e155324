// One handshake without sockets of Node's. Visitors that may want more than HTTP/1.1 are found by their first bytes, and go another way.

import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import type { AcceptedConnection } from '@tunnel/http-shell';
import { type ByteReader, beginTls, type HandleDuplex, type ReportInternalError, type TlsHandshake } from '@tunnel/mux';
import { ALPN_TUNNEL } from '@tunnel/protocol';

export interface HandshakeOwner {
  readonly context: SecureContext;
  readonly alpn: Buffer;
  readonly report: ReportInternalError;
  isSecure(duplex: HandleDuplex, accepted: AcceptedConnection): void;
  takesSocket(socket: Socket | null, accepted: AcceptedConnection, first: Buffer): void;
}

export class HandleHandshake implements ByteReader, TlsHandshake {
  readonly #duplex: HandleDuplex;
  readonly #accepted: AcceptedConnection;
  readonly #owner: HandshakeOwner;

  constructor(duplex: HandleDuplex, accepted: AcceptedConnection, owner: HandshakeOwner) {
    this.#duplex = duplex;
    this.#accepted = accepted;
    this.#owner = owner;
  }

  onData(bytes: Buffer, start: number, end: number): boolean {
    const hello = bytes.subarray(start, end);
    if (speaksHttp1Alone(hello)) {
      beginTls(this.#duplex, this.#owner.context, this.#owner.alpn, hello, this);
      return true;
    }
    // The memory is everybody's, and a connection is not given away while it is being read.
    setImmediate(this.#giveAway, Buffer.from(hello));
    return false;
  }

  readonly #giveAway = (first: Buffer): void => {
    try {
      this.#owner.takesSocket(this.#duplex.release(), this.#accepted, first);
    } catch (error) {
      this.abandon(error, 'https.handshake');
    }
  };

  onSecure(): void {
    try {
      this.#owner.isSecure(this.#duplex, this.#accepted);
    } catch (error) {
      this.abandon(error, 'https.secure');
    }
  }

  /** Strangers' handshakes fail all the time: closed without a word. */
  onFailed(): void {
    this.#duplex.destroy();
  }

  onEnd(): void {
    this.onFailed();
  }

  onReset(): void {}

  onDrain(): void {}

  abandon(error: unknown, where: string): void {
    this.#owner.report(error, where);
    // Not the duplex alone: it may be given away by now, or have a visitor.
    this.#accepted.close();
    this.#duplex.destroy();
  }
}

const RECORD_HEADER_BYTES = 5;
const HANDSHAKE_RECORD = 22;
/** As ALPN has them: each behind its length. What looks like one by chance only takes the longer way. */
const OTHER_PROTOCOLS = ['h2', ALPN_TUNNEL].map((name) =>
  Buffer.from(`${String.fromCharCode(name.length)}${name}`, 'latin1'),
);

/** A whole ClientHello in one record that names nothing but HTTP/1.1. Everything else, garbage too, is for node:tls to judge. */
export const speaksHttp1Alone = (hello: Buffer): boolean => {
  if (hello.length < RECORD_HEADER_BYTES + 4 || hello[0] !== HANDSHAKE_RECORD) return false;
  const isWhole = hello.readUInt16BE(3) + RECORD_HEADER_BYTES === hello.length;
  // A hello may go on in the next record: its own length says.
  const isOne = isWhole && hello.readUIntBE(6, 3) + 4 + RECORD_HEADER_BYTES === hello.length;
  return isOne && OTHER_PROTOCOLS.every((name) => !hello.includes(name));
};
