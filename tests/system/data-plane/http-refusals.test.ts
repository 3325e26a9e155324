// Tests of error responses of the edge itself: for too many connections and for malformed requests. Visitors can read each response, and
// the port keeps working.
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { eventually } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import {
  askHttp,
  openHttp,
  type PublicEndpoint,
  problemOf,
  readUntil,
  sendRaw,
  startWeb,
} from '../http-tunnels.fixture.ts';
import { it } from '../in-process.fixture.ts';

const JSON_PLEASE = { accept: 'application/json' };

/** Opens a keep-alive connection that has received a response and stays open. */
const stay = async (endpoint: PublicEndpoint): Promise<Socket> => {
  const socket = await sendRaw(endpoint, 'GET / HTTP/1.1\r\nHost: {host}\r\n\r\n');
  await readUntil(socket, /\r\n\r\nhere/);
  return socket;
};

describe.concurrent('too many connections', () => {
  it('of one tunnel get a 503 with Retry-After until a connection closes', async ({ harness }) => {
    const web = harness.use(await startWeb((_, response) => void response.end('here')));
    const stack = await harness.stack({ limits: 'connections_per_tunnel = 2' });
    const { endpoint } = await openHttp(harness, stack, web.port);
    const other = await openHttp(harness, stack, web.port);
    const one = await stay(endpoint);
    const two = await stay(endpoint);
    const refused = await askHttp(endpoint, { headers: JSON_PLEASE });
    expect(problemOf(refused)).toMatchObject({ status: 503, code: 'CONNECTIONS_PER_TUNNEL' });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect((await askHttp(other.endpoint)).status).toBe(200);
    one.destroy();
    await eventually(async () => expect((await askHttp(endpoint)).status).toBe(200));
    two.destroy();
  });

  it('from one address get a 429 with Retry-After until a connection closes', async ({ harness }) => {
    const web = harness.use(await startWeb((_, response) => void response.end('here')));
    const stack = await harness.stack({ limits: 'connections_per_address = 2' });
    const { endpoint } = await openHttp(harness, stack, web.port);
    const one = await stay(endpoint);
    const two = await stay(endpoint);
    const refused = await askHttp(endpoint, { headers: JSON_PLEASE });
    expect(problemOf(refused)).toMatchObject({ status: 429, code: 'CONNECTIONS_PER_ADDRESS' });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    one.destroy();
    await eventually(async () => expect((await askHttp(endpoint)).status).toBe(200));
    two.destroy();
  });
});

describe.concurrent('malformed requests', () => {
  it('get a readable 400, a slow header a 408 and a large header a 431; the service sees no request', async ({
    harness,
  }) => {
    let seen = 0;
    const web = harness.use(
      await startWeb((_, response) => {
        seen += 1;
        response.end('here');
      }),
    );
    const { endpoint } = await openHttp(harness, await harness.stack(), web.port);
    // Only this stack has a short header timeout: on a busy machine any header can take a second.
    const impatient = await harness.stack({ server: 'head_timeout_secs = 1' });
    const hasty = await openHttp(harness, impatient, web.port);
    const answerTo = async (text: string, at = endpoint): Promise<string> => {
      const socket = await sendRaw(at, text);
      const heard = await readUntil(socket, /\r\n\r\n/);
      socket.destroy();
      return heard.slice(9, 12);
    };
    const smuggled =
      'GET / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n';
    expect(await answerTo(smuggled)).toBe('400');
    expect(await answerTo('GET / HTTP/1.1\nHost: {host}\n\n')).toBe('400');
    expect(await answerTo('GET / HTTP/1.1\r\nHost: {host}\r\nX-Slow:', hasty.endpoint)).toBe('408');
    expect(await answerTo(`GET / HTTP/1.1\r\nHost: {host}\r\nX: ${'x'.repeat(33 * 1024)}\r\n\r\n`)).toBe('431');
    expect(await answerTo('CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n')).toMatch(/^(400|405|501)$/);
    expect(seen).toBe(0);
    // The port still serves valid requests.
    expect((await askHttp(endpoint)).text).toBe('here');
  });
});

describe.concurrent('a keep-alive connection', () => {
  it('is routed separately for each requested host', async ({ harness }) => {
    const [one, two] = await Promise.all(
      ['one', 'two'].map(async (name) => harness.use(await startWeb((_, response) => void response.end(name)))),
    );
    const stack = await harness.stack();
    const first = await openHttp(harness, stack, one?.port ?? 0);
    const second = await openHttp(harness, stack, two?.port ?? 0);
    const socket = await sendRaw(first.endpoint, 'GET / HTTP/1.1\r\nHost: {host}\r\n\r\n');
    expect(await readUntil(socket, /\r\n\r\none/)).toContain('200 OK');
    socket.write(`GET / HTTP/1.1\r\nHost: ${second.endpoint.host}\r\n\r\n`);
    expect(await readUntil(socket, /\r\n\r\ntwo/)).toContain('200 OK');
    socket.write(`GET / HTTP/1.1\r\nHost: nobody.localhost\r\nConnection: close\r\n\r\n`);
    expect(await readUntil(socket, /<\/html>/)).toContain('404 Not Found');
    await once(socket, 'end');
    socket.destroy();
  });
});
