// Tests of HTTP/2 visitors: a slow, canceled or stalled stream does not affect the remaining streams of the connection.
import { once } from 'node:events';
import type { ClientHttp2Stream } from 'node:http2';
import { deterministicBytes, eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { openHttp, residentMb, startWeb } from '../http-tunnels.fixture.ts';
import { askHttp2, dialHttp2, TLS_FLAGS } from '../https-visitor.fixture.ts';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';

const shared = new Harness();
let stack: Stack;
beforeAll(async () => {
  stack = await shared.stack({ tls: true });
});
afterAll(() => shared.close());

const nextPiece = async (stream: ClientHttp2Stream): Promise<string> => String((await once(stream, 'data'))[0]);

describe.concurrent('HTTP/2', () => {
  it('server-sent events arrive one at a time, as they are sent', async ({ harness }) => {
    let send: (text: string) => void = () => {};
    const web = harness.use(
      await startWeb((_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.flushHeaders();
        send = (text) => void response.write(`data: ${text}\n\n`);
      }),
    );
    const { endpoint } = await openHttp(harness, stack, web.port, TLS_FLAGS);
    const stream = dialHttp2(harness, endpoint).request({ ':path': '/events' });
    stream.on('error', () => {});
    await once(stream, 'response');
    const delays: number[] = [];
    for (let nth = 0; nth < 50; nth += 1) {
      const piece = nextPiece(stream);
      const since = performance.now();
      send(String(nth));
      expect(await piece).toBe(`data: ${nth}\n\n`);
      delays.push(performance.now() - since);
    }
    expect(delays.sort((a, b) => a - b)[25]).toBeLessThan(1000);
  });

  it('an upload gets response data while its body is still being sent', async ({ harness }) => {
    const web = harness.use(await startWeb((request, response) => void request.pipe(response)));
    const { endpoint } = await openHttp(harness, stack, web.port, TLS_FLAGS);
    const stream = dialHttp2(harness, endpoint).request({ ':path': '/', ':method': 'POST' });
    for (let nth = 0; nth < 10; nth += 1) {
      const piece = nextPiece(stream);
      stream.write(`piece ${nth}`);
      expect(await piece).toBe(`piece ${nth}`);
    }
    const ended = once(stream, 'end');
    stream.end();
    await ended;
  });

  it('a canceled request closes the connection to the service, and the visitor connection serves the next request', async ({
    harness,
  }) => {
    let asked = 0;
    let gone = 0;
    const web = harness.use(
      await startWeb((request, response) => {
        if (request.url === '/next') return void response.end('next');
        asked += 1;
        request.socket.once('close', () => {
          gone += 1;
        });
      }),
    );
    const { tunnel, endpoint } = await openHttp(harness, stack, web.port, TLS_FLAGS);
    const session = dialHttp2(harness, endpoint);
    const stream = session.request({ ':path': '/given-up' });
    stream.on('error', () => {});
    await eventually(() => expect(asked).toBe(1));
    stream.close(8);
    await eventually(() => expect(gone).toBe(1));
    expect((await askHttp2(session, '/next')).body.toString()).toBe('next');
    expect(await tunnel.waitFor('request')).toMatchObject({ path: '/given-up', aborted: true });
  });

  it('unread streams stall and use little memory, while other streams of the connection continue', async ({
    harness,
  }) => {
    const piece = deterministicBytes(64 * 1024, 1);
    let written = 0;
    const web = harness.use(
      await startWeb((request, response) => {
        if (request.url === '/small') return void response.end('small');
        const pump = (): void => {
          let goesOn = true;
          while (goesOn && !response.destroyed) {
            goesOn = response.write(piece);
            written += piece.length;
          }
        };
        response.on('drain', pump);
        pump();
      }),
    );
    // Edge and client run as executables, so that the memory of the processes can be measured.
    const own = await harness.stack({ tls: true, programs: true });
    const { tunnel, endpoint } = await openHttp(harness, own, web.port, TLS_FLAGS, { programs: true });
    const session = dialHttp2(harness, endpoint);
    expect((await askHttp2(session, '/small')).body.toString()).toBe('small');
    const pids = [own.program.pid, tunnel.pid];
    const before = pids.map((pid) => residentMb(pid));
    const stalled = Array.from({ length: 10 }, () => session.request({ ':path': '/endless' }));
    for (const stream of stalled) {
      stream.on('error', () => {});
      stream.pause();
    }
    let last = -1;
    await eventually(
      () => {
        const isStuck = written > 0 && written === last;
        last = written;
        expect(isStuck).toBe(true);
      },
      { timeoutMs: 30_000, intervalMs: 500 },
    );
    // Each stream stalls at its own flow-control window, so the connection serves requests as well as a fresh connection.
    expect((await askHttp2(dialHttp2(harness, endpoint), '/small')).body.toString()).toBe('small');
    expect((await askHttp2(session, '/small')).body.toString()).toBe('small');
    pids.forEach((pid, index) => expect(residentMb(pid) - (before[index] ?? 0)).toBeLessThan(150));
    for (const stream of stalled) stream.close(8);
    await eventually(async () => expect(await own.metric('tunnel_active_streams')).toBeLessThan(3));
  });

  it('a drain of the edge lets the streams of a connection finish', async ({ harness }) => {
    let finish: () => void = () => {};
    const web = harness.use(
      await startWeb((_, response) => {
        response.write('begun ');
        finish = () => void response.end('ended');
      }),
    );
    const own = await harness.stack({ tls: true });
    const { endpoint } = await openHttp(harness, own, web.port, TLS_FLAGS);
    const session = dialHttp2(harness, endpoint);
    const stream = session.request({ ':path': '/' });
    let heard = await nextPiece(stream);
    const toldToGo = once(session, 'goaway');
    own.program.signal('SIGTERM');
    await toldToGo;
    stream.on('data', (bytes) => {
      heard += String(bytes);
    });
    const ended = once(stream, 'end');
    finish();
    await ended;
    expect(heard).toBe('begun ended');
    expect(await own.program.waitForExit()).toEqual({ code: 0, signal: null });
  });
});
