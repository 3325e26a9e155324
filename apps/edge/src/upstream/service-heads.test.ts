// Request heads near their limits, on the way to a service of HTTP/1.1 or HTTP/2. A bad head from a visitor, or a bad Host setting of a
// tunnel, affects only one request.
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { type HttpStand, startHttpStand, talk } from '../ingress/http/http.fixture.ts';
import { ask, startHttpsPort, visitHttp2 } from '../ingress/http/https.fixture.ts';
import { startRecordingH2c, startRecordingService } from '../ingress/http/service.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Starts an HTTP/2 service that accepts up to 1000 header fields. */
const startRoomyH2c = async (): Promise<{ readonly port: number; close(): void }> => {
  const server = createServer({ maxHeaderListPairs: 1000 }, (_request, response) => response.end('served'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
};

const SERVICES = {
  http1: () => startRecordingService('served'),
  h2c: () => startRecordingH2c('served'),
  'roomy h2c': startRoomyH2c,
} as const;

type Kind = keyof typeof SERVICES;

const setUp = async (kind: Kind, hostHeader: string | null = null): Promise<HttpStand> => {
  const service = await SERVICES[kind]();
  const localProtocol = kind === 'http1' ? 'http1' : 'h2c';
  const stand = await startHttpStand(service.port, { domain: 'localhost', http: { localProtocol, hostHeader } });
  cleanups.push(
    () => service.close(),
    () => stand.stop(),
  );
  return stand;
};

/**
 * Number of fields that the edge adds. A service on Node.js accepts 128 fields including these, and resets the stream of a larger head,
 * which causes 502.
 */
const OURS = 8;

const allowed = (kind: Kind, count: number): (number | 'reset')[] => {
  if (count > 128) return [431, 'reset'];
  return kind === 'h2c' && count > 128 - OURS ? [200, 502] : [200];
};

const fieldsOf = (count: number): [string, string][] => Array.from({ length: count }, (_, n) => [`x-${n}`, `${n}`]);

const COUNTS = [100, 120, 124, 125, 126, 127, 128, 129, 160, 200];
const KINDS = Object.keys(SERVICES) as Kind[];

describe.each(KINDS.flatMap((kind) => COUNTS.map((count) => [kind, count] as const)))(
  'to a service of type %s, a head of %i fields',
  (kind, count) => {
    it('over HTTP/1.1 is served or refused, and the next request is served', async () => {
      const stand = await setUp(kind);
      const lines = fieldsOf(count - 2).map(([name, value]) => `${name}: ${value}\r\n`);
      const answer = await talk(
        stand.port,
        `GET / HTTP/1.1\r\nHost: web.localhost\r\n${lines.join('')}Connection: close\r\n\r\n`,
      );
      expect(allowed(kind, count)).toContain(Number(/^HTTP\/1\.1 (\d+) /.exec(answer)?.[1]));
      const next = await talk(stand.port, 'GET / HTTP/1.1\r\nHost: web.localhost\r\nConnection: close\r\n\r\n');
      expect(next).toMatch(/^HTTP\/1\.1 200 /);
    });

    it('over HTTP/2 is served or refused, and the next request is served', async () => {
      const stand = await setUp(kind);
      const port = await startHttpsPort(stand.ingress);
      cleanups.push(() => port.stop());
      const session = visitHttp2({ port });
      cleanups.push(() => session.destroy());
      const outcome = await ask(session, { ':path': '/', ...Object.fromEntries(fieldsOf(count - 1)) }).then(
        ({ status }) => status,
        () => 'reset',
      );
      expect(allowed(kind, count)).toContain(outcome);
      expect((await ask(session, { ':path': '/' })).status).toBe(200);
    });
  },
);

describe.each(['http1', 'h2c'] as const)('to a service of type %s', (kind) => {
  it.each(['[::1', 'a/b', '@', 'a@b', 'a b', '', ':', 'x:y', '\u00fc', 'a#b', 'a?b', '%00'])(
    'a request with %j as the Host setting of the tunnel gets 200 or 502',
    async (hostHeader) => {
      const stand = await setUp(kind, hostHeader);
      const answer = await talk(stand.port, 'GET / HTTP/1.1\r\nHost: web.localhost\r\nConnection: close\r\n\r\n');
      expect(answer).toMatch(/^HTTP\/1\.1 (?:200|502) /);
      expect(stand.ingress.connections).toBeLessThanOrEqual(1);
    },
  );
});
