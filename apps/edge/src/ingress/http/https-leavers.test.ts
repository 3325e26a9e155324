// Visitors leaving the https port during or after the handshake.

import { once } from 'node:events';
import * as net from 'node:net';
import { Duplex } from 'node:stream';
import { type AcceptedSocket, acceptingServer, adoptAccepted, allowStaticReads, type ByteReader } from '@tunnel/mux';
import { eventually, FakeClock, rethrow } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { openGate } from '../gate.fixture.ts';
import { TLS_HANDSHAKE_TIMEOUT_MS } from '../tls/pending-handshakes.ts';
import { dialTls, type HttpsStand, startHttpsStand } from './https.fixture.ts';

const SWITCHED = Buffer.from('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');

let service: net.Server;
let stand: HttpsStand;
/** How the connections to the service ended. */
let ends: string[];
let received: string;

const open = async (
  options: Parameters<typeof startHttpsStand>[1] = {},
  secure: Parameters<typeof startHttpsStand>[2] = {},
): Promise<void> => {
  ends = [];
  received = '';
  const own = ends;
  const take = (accepted: AcceptedSocket): void => {
    const end = adoptAccepted(accepted);
    const reader: ByteReader = {
      onData(bytes, start, to) {
        if (received === '') end.write(SWITCHED, 0, SWITCHED.length, true);
        received += bytes.toString('latin1', start, to);
        return true;
      },
      onEnd() {
        own.push('end');
        end.end();
      },
      onReset: ({ text }) => void own.push(text),
      onDrain() {},
      abandon: rethrow,
    };
    end.read(reader);
  };
  // The service uses sockets of the edge, because sockets of Node.js report a reset right behind bytes as an end.
  service = acceptingServer({ keepAliveMs: 60_000, report: rethrow, where: 'service', take });
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  stand = await startHttpsStand((service.address() as net.AddressInfo).port, options, secure);
};

const visitors = new Set<net.Socket>();

const dial = async (): Promise<net.Socket> => {
  const socket = net.connect({ host: '127.0.0.1', port: stand.port.address.port, allowHalfOpen: true });
  visitors.add(socket);
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
};

afterEach(() => {
  allowStaticReads(true);
  for (const socket of visitors) socket.destroy();
  visitors.clear();
  stand.stop();
  service.close();
});

describe('a visitor in its TLS handshake', () => {
  /** First bytes of an incomplete handshake: no bytes, or a record header without a record. */
  const STEPS = [
    ['silent', Buffer.alloc(0)],
    ['half a hello', Buffer.from('1603010100010000', 'hex')],
  ] as const;

  it.each(STEPS)('is disconnected at the handshake time limit: %s', async (_name, first) => {
    const clock = new FakeClock();
    await open({}, { clock });
    const early = await dial();
    early.write(first);
    await eventually(() => expect(stand.port.handshakes).toBe(1));
    await clock.advance(TLS_HANDSHAKE_TIMEOUT_MS - 1000);
    const late = await dial();
    late.write(first);
    await eventually(() => expect(stand.port.handshakes).toBe(2));
    const isClosed = once(early, 'close');
    early.resume().once('end', () => early.end());
    await clock.advance(1000);
    await isClosed;
    await eventually(() => expect(stand.port.handshakes).toBe(1));
    late.resume().once('end', () => late.end());
    const isLateClosed = once(late, 'close');
    await clock.advance(TLS_HANDSHAKE_TIMEOUT_MS);
    await isLateClosed;
    await eventually(() => expect([stand.port.handshakes, stand.http.gate.admission.used.visitors]).toEqual([0, 0]));
  });

  it.each(STEPS)('is no longer counted when the gate closes its connection: %s', async (_name, first) => {
    const clock = new FakeClock();
    await open({ gate: openGate({ perNetwork: 1, clock }) });
    for (const visitor of [await dial(), await dial()]) visitor.write(first);
    await eventually(() => expect(stand.port.handshakes).toBe(2));
    // A visitor above its limit has 3 seconds to read the reason.
    await clock.advance(3000);
    expect(stand.http.gate.admission.used.visitors).toBe(1);
    await eventually(() => expect(stand.port.handshakes).toBe(1));
  });
});

describe('a visitor after its TLS handshake', () => {
  /** A connection below TLS that can hold back the last bytes of a write. */
  class Wire extends Duplex {
    readonly socket: net.Socket;
    keptBack = 0;

    constructor(socket: net.Socket) {
      super({ allowHalfOpen: true });
      this.socket = socket;
      socket.on('data', (chunk: Buffer) => this.push(chunk));
    }

    override _read(): void {}

    override _write(bytes: Buffer, _encoding: string, done: () => void): void {
      this.socket.write(bytes.subarray(0, bytes.length - this.keptBack));
      done();
    }
  }

  const upgraded = async () => {
    const wire = new Wire(await dial());
    const visitor = dialTls(stand, { socket: wire, host: undefined, port: undefined });
    visitor.on('error', () => {});
    await once(visitor, 'secureConnect');
    visitor.write('GET / HTTP/1.1\r\nHost: web.localhost\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
    await once(visitor, 'data');
    return { wire, visitor };
  };

  // Bytes and reset are sent in the same turn, so that the edge finds both in a single event.
  it.each([
    ['whole bytes', 0, true],
    ['half a record', 5, true],
    ['whole bytes, without handles', 0, false],
    ['half a record, without handles', 5, false],
  ])('that is reset right after %s resets the connection to the service', async (_name, keptBack, hasHandles) => {
    allowStaticReads(hasHandles);
    await open();
    const { wire, visitor } = await upgraded();
    wire.keptBack = keptBack;
    visitor.write('whole');
    wire.socket.resetAndDestroy();
    await eventually(() => expect(ends).not.toEqual([]));
    expect(ends).toEqual(['ECONNRESET']);
  });

  it('that ends its side also ends the input of the service', async () => {
    await open();
    const { wire, visitor } = await upgraded();
    visitor.write('whole');
    wire.socket.end();
    await eventually(() => expect(ends).toEqual(['end']));
    expect(received).toContain('whole');
  });
});
