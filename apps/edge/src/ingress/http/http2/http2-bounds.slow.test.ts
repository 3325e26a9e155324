// Costs and the end of a single HTTP/2 connection: floods, stalled readers and writers, idle time and drain.

import { once } from 'node:events';
import * as http from 'node:http';
import { type ClientHttp2Session, constants } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { InFlight } from '@tunnel/rules/rate';
import { eventually } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { EDGE_LIMITS } from '../../../limits.ts';
import type { IngressOptions } from '../http.fixture.ts';
import { ask, dialTls, type HttpsStand, startHttpsStand, visitHttp2 } from '../https.fixture.ts';
import {
  DATA,
  END_HEADERS,
  END_STREAM,
  frame,
  GOAWAY,
  HEADERS,
  PING,
  PRIORITY,
  RST_STREAM,
  refusesSelfDependency,
  SETTINGS,
  WINDOW_UPDATE,
} from './http2-frames.fixture.ts';
import { HTTP2_QUIET_MS } from './http2-liveness.ts';
import { HTTP2_OUTBOUND_MAX_BYTES } from './http2-outbound.ts';
import { HTTP2_RESETS_MAX, HTTP2_STREAMS_PER_CONNECTION } from './http2-visitor.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const start = async (onRequest: http.RequestListener, options: Partial<IngressOptions> = {}): Promise<HttpsStand> => {
  const server = http.createServer(onRequest);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stand = await startHttpsStand((server.address() as AddressInfo).port, options);
  cleanups.push(
    () => server.close(),
    () => server.closeAllConnections(),
    () => stand.stop(),
  );
  return stand;
};

const visit = (stand: HttpsStand): ClientHttp2Session => {
  const session = visitHttp2(stand);
  cleanups.push(() => session.destroy());
  return session;
};

const goawayOf = async (session: ClientHttp2Session): Promise<number> => Number((await once(session, 'goaway'))[0]);

/** GET https://web.localhost/ in HPACK, without the dynamic table. */
const AUTHORITY = Buffer.concat([Buffer.from([0x41, 13]), Buffer.from('web.localhost')]);
const GET = Buffer.concat([Buffer.from([0x82, 0x87, 0x84]), AUTHORITY]);
const GET_ENDLESS = Buffer.concat([Buffer.from([0x82, 0x87, 0x04, 8]), Buffer.from('/endless'), AUTHORITY]);

/** GET https://nix.localhost/ in HPACK: a name without a tunnel. */
const NOWHERE = Buffer.concat([Buffer.from([0x82, 0x87, 0x84, 0x41, 13]), Buffer.from('nix.localhost')]);

/** A visitor without regard for the rules of HTTP/2. The visitor writes raw frames and waits for a GOAWAY frame from the edge. */
class RawHttp2 {
  readonly goaway: Promise<number>;
  readonly #socket: TLSSocket;

  static async enter(stand: HttpsStand): Promise<RawHttp2> {
    const socket = dialTls(stand, { ALPNProtocols: ['h2'] });
    await once(socket, 'secureConnect');
    return new RawHttp2(socket);
  }

  private constructor(socket: TLSSocket) {
    this.#socket = socket;
    cleanups.push(() => socket.destroy());
    socket.on('error', () => {});
    let received = Buffer.alloc(0);
    this.goaway = new Promise((resolve) => {
      socket.on('data', (chunk: Buffer) => {
        received = Buffer.concat([received, chunk]);
        while (received.length >= 9 && received.length >= 9 + received.readUIntBE(0, 3)) {
          if (received[3] === GOAWAY) resolve(received.readUInt32BE(13));
          received = received.subarray(9 + received.readUIntBE(0, 3));
        }
      });
    });
    socket.write(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(SETTINGS, 0, 0, [])]));
  }

  write(...frames: Buffer[]): void {
    this.#socket.write(Buffer.concat(frames));
  }

  stopReading(): void {
    this.#socket.pause();
  }

  /** Closes the socket. Unread bytes turn the close into a reset. */
  async leave(): Promise<void> {
    this.#socket.destroy();
    await once(this.#socket, 'close');
  }

  flood(next: () => Buffer): void {
    const flood = setInterval(() => {
      if (this.#socket.writable) this.#socket.write(next());
    }, 2);
    cleanups.push(() => clearInterval(flood));
  }
}

const PIECE = Buffer.alloc(64 * 1024);
const MiB = 1024 * 1024;

const BROKEN: [string, Buffer, number][] = [
  ['data behind the end of a request', frame(DATA, 0, 1, [120]), constants.NGHTTP2_STREAM_CLOSED],
];
if (await refusesSelfDependency()) {
  const itself = frame(PRIORITY, 0, 1, [0, 0, 0, 1, 1]);
  BROKEN.push(['a request that depends on itself', itself, constants.NGHTTP2_PROTOCOL_ERROR]);
}

describe('one HTTP/2 connection', () => {
  it('makes the service wait while the visitor does not read, and serves further requests', async () => {
    let written = 0;
    const stand = await start((request, response) => {
      if (request.url !== '/endless') return void response.end('quick');
      const more = (): void => {
        while (!response.destroyed && response.write(PIECE)) written += PIECE.length;
        written += PIECE.length;
      };
      response.on('drain', more);
      more();
    });
    const session = visit(stand);
    const stream = session.request({ ':path': '/endless' });
    stream.on('error', () => {});
    await once(stream, 'response');
    let before = -1;
    await eventually(
      () => {
        const seen = before;
        before = written;
        expect(seen).toBe(written);
      },
      { intervalMs: 200 },
    );
    // The limit covers the windows of the visitor and of the tunnel's stream, and the buffers of four sockets.
    expect(written).toBeLessThan(24 * MiB);
    expect((await ask(session, { ':path': '/' })).body).toBe('quick');
  });

  it('pauses an upload while the service does not read, and finishes the upload later', async () => {
    let request: http.IncomingMessage | undefined;
    const stand = await start((incoming, response) => {
      if (incoming.method === 'GET') return void response.end('quick');
      request = incoming;
      incoming.pause();
      incoming.on('end', () => response.end('taken'));
    });
    const session = visit(stand);
    const stream = session.request({ ':method': 'POST' });
    let written = 0;
    const total = 40 * MiB;
    const more = (): void => {
      while (written < total) {
        written += PIECE.length;
        if (!stream.write(PIECE)) return;
      }
      stream.end();
    };
    stream.on('drain', more);
    more();
    let before = -1;
    await eventually(
      () => {
        const seen = before;
        before = written;
        expect([seen, request !== undefined]).toEqual([written, true]);
      },
      { intervalMs: 200 },
    );
    expect(written).toBeLessThan(24 * MiB);
    expect((await ask(session, { ':path': '/' })).body).toBe('quick');
    await stand.http.clock.advance(2000);
    request?.resume();
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
    expect([headers[':status'], written]).toEqual([200, total]);
  });

  it('serves a limited number of requests at once, and answers 300', async () => {
    let atOnce = 0;
    let most = 0;
    const stand = await start((_request, response) => {
      atOnce += 1;
      most = Math.max(most, atOnce);
      setTimeout(() => {
        atOnce -= 1;
        response.end('done');
      }, 20);
    });
    const session = visit(stand);
    await once(session, 'remoteSettings');
    const answers = await Promise.all(Array.from({ length: 300 }, () => ask(session, { ':path': '/' })));
    expect(new Set(answers.map((answer) => answer.body))).toEqual(new Set(['done']));
    expect(most).toBeLessThanOrEqual(HTTP2_STREAMS_PER_CONNECTION);
  });

  it('is closed when the visitor cancels request after request', async () => {
    const stand = await start(() => {});
    const raw = await RawHttp2.enter(stand);
    let id = 1;
    raw.flood(() => {
      const frames: Buffer[] = [];
      for (const last = id + 100; id < last; id += 2) {
        frames.push(frame(HEADERS, END_STREAM | END_HEADERS, id, GET), frame(RST_STREAM, 0, id, [0, 0, 0, 8]));
      }
      return Buffer.concat(frames);
    });
    expect(await raw.goaway).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    await eventually(() => expect(stand.http.ingress.connections).toBe(0));
    expect(stand.http.tunnel.counters.requests).toBeLessThan(2 * HTTP2_RESETS_MAX);
  });

  it('is closed after a flood of pings', async () => {
    const stand = await start(() => {});
    const raw = await RawHttp2.enter(stand);
    const pings = Buffer.concat(Array.from({ length: 500 }, () => frame(PING, 0, 0, [1, 2, 3, 4, 5, 6, 7, 8])));
    raw.flood(() => pings);
    expect(await raw.goaway).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    await eventually(() => expect(stand.http.ingress.connections).toBe(0));
  });

  it.each(BROKEN)('is closed after %s and no longer counts, even if its visitor stays', async (_what, bad, code) => {
    const stand = await start(() => {});
    const raw = await RawHttp2.enter(stand);
    raw.write(frame(HEADERS, END_STREAM | END_HEADERS, 1, GET));
    await eventually(() => expect(stand.http.tunnel.counters.openConnections).toBe(1));
    raw.write(bad);
    expect(await raw.goaway).toBe(code);
    await eventually(async () => {
      await stand.http.clock.advance(HTTP2_QUIET_MS);
      expect(stand.http.ingress.connections).toBe(0);
    });
    expect(stand.http.tunnel.counters.openConnections).toBe(0);
  });

  it.each([
    ['answers of our own', NOWHERE],
    ['answers of a service', GET],
  ])('holds little of %s for a visitor that does not read, and is cut off in the end', async (_what, request) => {
    const stand = await start((_request, response) => {
      response.writeEarlyHints({ link: Array.from({ length: 50 }, () => `</${'x'.repeat(40)}>; rel=preload`) });
      response.end('y'.repeat(20_000));
    });
    const raw = await RawHttp2.enter(stand);
    raw.stopReading();
    // A window of 0 bytes: bodies must wait, but heads are still sent.
    raw.write(frame(SETTINGS, 0, 0, [0, 4, 0, 0, 0, 0]));
    let id = 1;
    raw.flood(() => {
      const frames: Buffer[] = [];
      for (const last = id + 40; id < last; id += 2) frames.push(frame(HEADERS, END_STREAM | END_HEADERS, id, request));
      return Buffer.concat(frames);
    });
    const { ingress, clock } = stand.http;
    await eventually(() => expect(ingress.queuedBytes).toBeGreaterThan(10_000));
    let most = 0;
    for (let at = 0; at < 100; at += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      most = Math.max(most, ingress.queuedBytes);
    }
    expect(most).toBeLessThan(HTTP2_OUTBOUND_MAX_BYTES + MiB);
    await eventually(async () => {
      await clock.advance(EDGE_LIMITS.HTTP_SEND_TIMEOUT_MS);
      expect(ingress.connections).toBe(0);
    });
    expect(stand.http.tunnel.counters.openConnections).toBe(0);
  });

  it('stays open while its visitor is quiet or does not read, until the visitor leaves', async () => {
    let written = 0;
    const onRequest: http.RequestListener = (request, response) => {
      if (request.url !== '/endless') return;
      const more = (): void => {
        while (!response.destroyed && response.write(PIECE)) written += PIECE.length;
        written += PIECE.length;
      };
      response.on('drain', more);
      more();
    };
    const stand = await start(onRequest, { firstByteTimeoutMs: Number.POSITIVE_INFINITY });
    const quiet = visit(stand).request({ ':path': '/' });
    quiet.on('error', () => {});
    const raw = await RawHttp2.enter(stand);
    raw.stopReading();
    // The largest possible HTTP/2 windows, so that the socket fills up instead of a window.
    const windows = [
      frame(SETTINGS, 0, 0, [0, 4, 0x7f, 0xff, 0xff, 0xff]),
      frame(WINDOW_UPDATE, 0, 0, [0x70, 0, 0, 0]),
    ];
    raw.write(...windows, frame(HEADERS, END_STREAM | END_HEADERS, 1, GET_ENDLESS));
    let before = -1;
    await eventually(
      () => {
        const seen = before;
        before = written;
        expect([seen > 0, seen]).toEqual([true, written]);
      },
      { intervalMs: 200 },
    );
    const { ingress, clock, pair } = stand.http;
    for (let at = 0; at < 5; at += 1) await clock.advance(HTTP2_QUIET_MS);
    expect([ingress.connections, quiet.closed]).toEqual([2, false]);
    // Node.js emits no event when the visitor that did not read has gone.
    await raw.leave();
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(2 * EDGE_LIMITS.SESSION_TICK_MS);
    await eventually(() =>
      expect([ingress.connections, pair.edge.liveStreams, ingress.queuedBytes]).toEqual([1, 1, 0]),
    );
  });

  it('counts once for a tunnel, however many requests it sends', async () => {
    const counts = new InFlight({ perKey: 1 });
    const stand = await start((_request, response) => response.end('fine'), { counts });
    const session = visit(stand);
    for (let at = 0; at < 3; at += 1) expect((await ask(session, { ':path': '/' })).status).toBe(200);
    const second = await ask(visit(stand), { ':path': '/' });
    expect([second.status, second.headers['retry-after']]).toEqual([503, '1']);
    session.destroy();
    await eventually(() => expect(stand.http.tunnel.counters.openConnections).toBe(0));
    expect((await ask(visit(stand), { ':path': '/' })).status).toBe(200);
  });
});

describe('the end of an HTTP/2 connection', () => {
  it('comes after a long idle time, and sooner without any request', async () => {
    const stand = await start((_request, response) => response.end('fine'));
    const silent = visit(stand);
    const used = visit(stand);
    await ask(used, { ':path': '/' });
    await eventually(() => expect(stand.http.ingress.connections).toBe(2));
    const silentGone = goawayOf(silent);
    const usedGone = goawayOf(used);
    await stand.http.clock.advance(20_000);
    expect(await silentGone).toBe(constants.NGHTTP2_NO_ERROR);
    await eventually(() => expect(stand.http.ingress.connections).toBe(1));
    await stand.http.clock.advance(EDGE_LIMITS.HTTP_KEEP_ALIVE_MS);
    expect(await usedGone).toBe(constants.NGHTTP2_NO_ERROR);
    await eventually(() => expect(stand.http.ingress.connections).toBe(0));
  });

  it('comes when the visitor closes its side', async () => {
    const stand = await start(() => {});
    const socket = dialTls(stand, { ALPNProtocols: ['h2'] });
    socket.on('error', () => {}).resume();
    await once(socket, 'secureConnect');
    await eventually(() => expect(stand.http.ingress.connections).toBe(1));
    socket.end();
    await eventually(() => expect(stand.http.ingress.connections).toBe(0));
  });

  it('waits during a drain for requests under way', async () => {
    let finish: () => void = () => {};
    const stand = await start((_request, response) => {
      response.write('first');
      finish = () => response.end(' and last');
    });
    const session = visit(stand);
    const stream = session.request({ ':path': '/' });
    let body = '';
    stream.on('data', (chunk: Buffer) => {
      body += String(chunk);
    });
    await once(stream, 'data');
    const gone = goawayOf(session);
    stand.http.ingress.drain();
    expect(await gone).toBe(constants.NGHTTP2_NO_ERROR);
    expect(stand.http.ingress.connections).toBe(1);
    finish();
    await once(stream, 'end');
    expect(body).toBe('first and last');
    await stand.http.ingress.whenIdle();
    expect(stand.http.tunnel.counters.openConnections).toBe(0);
  });
});
