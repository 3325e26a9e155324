// Tests of streaming: data arrives at the receiver while the sender is still sending.
import { once } from 'node:events';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { deterministicBytes, hashOf } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import {
  askHttp,
  openHttp,
  type PublicEndpoint,
  readUntil,
  sendRaw,
  startWeb,
  wholeBody,
} from '../http-tunnels.fixture.ts';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';

const shared = new Harness();
let stack: Stack;
beforeAll(async () => {
  stack = await shared.stack();
});
afterAll(() => shared.close());

/** Starts a request. The caller writes the body. */
const begin = (endpoint: PublicEndpoint, method: string, headers: Record<string, string> = {}): ClientRequest => {
  const sent = httpRequest({
    hostname: '127.0.0.1',
    port: endpoint.port,
    method,
    headers: { host: endpoint.host, ...headers },
    agent: false,
  });
  sent.on('error', () => {});
  return sent;
};

const responseOf = async (sent: ClientRequest): Promise<IncomingMessage> => {
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return response;
};

const nextPiece = async (message: IncomingMessage): Promise<string> => {
  const [piece] = (await once(message, 'data')) as [Buffer];
  return piece.toString();
};

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] as number;

describe('server-sent events', () => {
  const EVENTS = 100;

  it('arrive one at a time, as they are sent', async ({ harness }) => {
    const sentAt: number[] = [];
    let send: () => void = () => {};
    const web = harness.use(
      await startWeb((_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.flushHeaders();
        send = () => {
          sentAt.push(performance.now());
          response.write(`id: ${sentAt.length}\ndata: ${'x'.repeat(20)}\n\n`);
        };
      }),
    );
    const { endpoint } = await openHttp(harness, stack, web.port);
    const sent = begin(endpoint, 'GET', { accept: 'text/event-stream' });
    sent.end();
    // The response headers arrive before the first event.
    const response = await responseOf(sent);
    const delays: number[] = [];
    for (let nth = 1; nth <= EVENTS; nth += 1) {
      const piece = nextPiece(response);
      send();
      expect(await piece).toBe(`id: ${nth}\ndata: ${'x'.repeat(20)}\n\n`);
      delays.push(performance.now() - (sentAt[nth - 1] as number));
    }
    sent.destroy();
    // The delay is a few milliseconds on a quiet machine. A buffered event would never arrive, because the test sends the next event only
    // afterwards.
    expect(median(delays)).toBeLessThan(1000);
  });
});

describe.concurrent('a request body', () => {
  it('is echoed piece by piece while it is still being sent', async ({ harness }) => {
    const web = harness.use(await startWeb((request, response) => void request.pipe(response)));
    const { endpoint } = await openHttp(harness, stack, web.port);
    const sent = begin(endpoint, 'POST');
    sent.write('piece 0');
    const response = await responseOf(sent);
    expect(await nextPiece(response)).toBe('piece 0');
    for (let nth = 1; nth < 20; nth += 1) {
      const piece = nextPiece(response);
      sent.write(`piece ${nth}`);
      expect(await piece).toBe(`piece ${nth}`);
    }
    const ended = once(response, 'end');
    response.resume();
    sent.end();
    await ended;
  });

  it.for(['in chunks', 'with a length'] as const)(
    '%s, 10 MB in total, comes back byte for byte',
    async (how, { harness }) => {
      const web = harness.use(await startWeb((request, response) => void request.pipe(response)));
      const { endpoint } = await openHttp(harness, stack, web.port);
      const body = deterministicBytes(10_000_000, 4);
      const headers = how === 'in chunks' ? { 'transfer-encoding': 'chunked' } : {};
      const answer = await askHttp(endpoint, { method: 'PUT', headers, body });
      expect(hashOf(answer.body)).toBe(hashOf(body));
    },
  );

  it('rejected by the service gets an early response that the visitor can read', async ({ harness }) => {
    const web = harness.use(
      await startWeb((_, response) => {
        response.writeHead(413, { connection: 'close' });
        response.end('too much');
      }),
    );
    const { endpoint } = await openHttp(harness, stack, web.port);
    const socket = await sendRaw(
      endpoint,
      `POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000000000\r\n\r\nbegun`,
    );
    const heard = await readUntil(socket, /too much/);
    expect(heard).toMatch(/^HTTP\/1\.1 413 .*\r\nconnection: close\r\n/is);
    socket.destroy();
  });

  it('that waits for 100 Continue gets it from the service, not from the edge', async ({ harness }) => {
    let letGo: () => void = () => {};
    const web = harness.use(await startWeb(() => {}));
    web.server.on('checkContinue', (request: IncomingMessage, response) => {
      letGo = () => response.writeContinue();
      void wholeBody(request).then((body) => response.end(`got ${body.length}`));
    });
    const asked = once(web.server, 'checkContinue');
    const { endpoint } = await openHttp(harness, stack, web.port);
    const sent = begin(endpoint, 'POST', { expect: '100-continue', 'content-length': '5' });
    let isAsked = false;
    const toldToGoOn = once(sent, 'continue').then(() => {
      isAsked = true;
    });
    sent.flushHeaders();
    await asked;
    expect(isAsked).toBe(false);
    letGo();
    await toldToGoOn;
    sent.end('hello');
    expect((await wholeBody(await responseOf(sent))).toString()).toBe('got 5');
  });

  it('that waits for 100 Continue can be rejected by the service before it is sent', async ({ harness }) => {
    const web = harness.use(await startWeb(() => {}));
    web.server.on('checkContinue', (_, response) => response.writeHead(417).end('no'));
    const { endpoint } = await openHttp(harness, stack, web.port);
    const sent = begin(endpoint, 'POST', { expect: '100-continue', 'content-length': '5' });
    sent.flushHeaders();
    const response = await responseOf(sent);
    expect([response.statusCode, (await wholeBody(response)).toString()]).toEqual([417, 'no']);
    sent.destroy();
  });
});

describe.concurrent('trailers', () => {
  it('pass in both directions after a chunked body', async ({ harness }) => {
    const web = harness.use(
      await startWeb(async (request, response) => {
        response.writeHead(200, { trailer: 'x-sum, x-seen' });
        const body = await wholeBody(request);
        response.write(body);
        response.addTrailers({ 'x-sum': String(body.length), 'x-seen': request.trailers['x-mine'] ?? 'none' });
        response.end();
      }),
    );
    const { endpoint } = await openHttp(harness, stack, web.port);
    const sent = begin(endpoint, 'POST', { trailer: 'x-mine', te: 'trailers' });
    sent.write('hello');
    sent.addTrailers({ 'x-mine': 'from the visitor' });
    sent.end();
    const response = await responseOf(sent);
    expect((await wholeBody(response)).toString()).toBe('hello');
    expect(response.trailers).toEqual({ 'x-sum': '5', 'x-seen': 'from the visitor' });
  });
});

describe.concurrent('a connection', () => {
  it('carries pipelined requests and returns their responses in order', async ({ harness }) => {
    const web = harness.use(
      await startWeb((request, response) => {
        // The first response takes longest.
        const delay = request.url === '/1' ? 100 : 0;
        setTimeout(() => response.end(`answer to ${request.url}`), delay);
      }),
    );
    const { endpoint } = await openHttp(harness, stack, web.port);
    const head = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: {host}\r\n\r\n`;
    const socket = await sendRaw(endpoint, ['/1', '/2', '/3'].map(head).join(''));
    const heard = await readUntil(socket, /answer to \/3/);
    expect(heard.match(/answer to \/\d/g)).toEqual(['answer to /1', 'answer to /2', 'answer to /3']);
    socket.destroy();
  });

  it('of HTTP/1.0 gets an unchunked body that ends with the connection', async ({ harness }) => {
    const web = harness.use(
      await startWeb((_, response) => {
        response.write('one ');
        response.end('two');
      }),
    );
    const { endpoint } = await openHttp(harness, stack, web.port);
    const socket = await sendRaw(endpoint, 'GET / HTTP/1.0\r\nHost: {host}\r\n\r\n');
    let heard = '';
    for await (const piece of socket) heard += String(piece);
    expect(heard).toMatch(/\r\n\r\none two$/);
    expect(heard).not.toMatch(/transfer-encoding/i);
  });
});
