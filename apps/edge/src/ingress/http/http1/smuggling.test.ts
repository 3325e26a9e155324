// The smuggling corpus through the real ingress. Each message is refused with a page that the visitor can read, and the service behind
// never gets a request that the visitor did not clearly send.
import * as net from 'node:net';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HIDDEN_REQUESTS, SMUGGLING_CORPUS } from '../../../../../../packages/http1/src/smuggling-corpus.fixture.ts';
import { type HttpStand, startHttpStand, talk } from '../http.fixture.ts';

let stand: HttpStand;
let service: net.Server;
let seen = '';

beforeAll(async () => {
  // A service without any checks: it answers and records the bytes of every message.
  service = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      seen += chunk.toString('latin1');
      if (seen.includes('\r\n\r\n')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
  });
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  stand = await startHttpStand((service.address() as net.AddressInfo).port, { domain: 'localhost' });
});
afterAll(() => {
  stand.stop();
  service.close();
});

describe('an ambiguous message', () => {
  it.each(SMUGGLING_CORPUS.map(({ name, bytes, status }) => [name, status, bytes] as const))(
    '%s gets %i and a close, and smuggles no second request to the service',
    async (_, status, bytes) => {
      seen = '';
      const answer = await talk(stand.port, bytes);
      expect(answer.match(/^HTTP\/1\.1 \d+/gm)?.at(-1)).toBe(`HTTP/1.1 ${status}`);
      expect(answer).toMatch(/connection: close/i);
      expect(answer).toContain('x-tunnel-error: HTTP_');
      expect(seen).not.toContain('/hidden');
      await eventually(() => expect(stand.tunnel.counters.openConnections).toBe(0));
    },
  );

  it.each(HIDDEN_REQUESTS.map(({ name, bytes, bodies }) => [name, bodies.length, bytes] as const))(
    '%s reaches the service as %i requests',
    async (_, count, bytes) => {
      seen = '';
      const before = stand.tunnel.counters.requests;
      const socket = net.connect({ port: stand.port, host: '127.0.0.1' });
      let answer = '';
      socket.on('data', (chunk: Buffer) => {
        answer += chunk.toString('latin1');
      });
      socket.write(bytes, 'latin1');
      await eventually(() => expect(answer.match(/HTTP\/1\.1 200/g)?.length ?? 0).toBe(count));
      socket.destroy();
      expect(stand.tunnel.counters.requests - before).toBe(count);
    },
  );
});
