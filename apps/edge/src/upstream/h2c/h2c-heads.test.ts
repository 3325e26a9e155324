// Heads at their bounds on the way to a service of HTTP/2: whatever a visitor sends, or a tunnel names as its Host, costs that request alone.
import { afterEach, describe, expect, it } from 'vitest';
import { type HttpStand, startHttpStand, talk } from '../../ingress/http/http.fixture.ts';
import { ask, startHttpsPort, visitHttp2 } from '../../ingress/http/https.fixture.ts';
import { startRecordingH2c } from '../../ingress/http/service.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const setUp = async (hostHeader: string | null = null): Promise<HttpStand> => {
  const service = await startRecordingH2c('served');
  const stand = await startHttpStand(service.port, { domain: 'localhost', http: { localProtocol: 'h2c', hostHeader } });
  cleanups.push(
    () => service.close(),
    () => stand.stop(),
  );
  return stand;
};

/** A service of node's takes 128 fields, ours included, and resets the stream of a head with more: 502. */
const OURS = 8;

const allowed = (count: number): (number | 'reset')[] => {
  if (count > 128) return [431, 'reset'];
  return count > 128 - OURS ? [200, 502] : [200];
};

const fieldsOf = (count: number): [string, string][] => Array.from({ length: count }, (_, n) => [`x-${n}`, `${n}`]);

describe.each([100, 120, 124, 125, 126, 127, 128, 129, 160, 200])('a head of %i fields', (count) => {
  it('over HTTP/1.1 is served or refused, and the next request is served', async () => {
    const stand = await setUp();
    const lines = fieldsOf(count - 2).map(([name, value]) => `${name}: ${value}\r\n`);
    const answer = await talk(
      stand.port,
      `GET / HTTP/1.1\r\nHost: web.localhost\r\n${lines.join('')}Connection: close\r\n\r\n`,
    );
    expect(allowed(count)).toContain(Number(/^HTTP\/1\.1 (\d+) /.exec(answer)?.[1]));
    const next = await talk(stand.port, 'GET / HTTP/1.1\r\nHost: web.localhost\r\nConnection: close\r\n\r\n');
    expect(next).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('over HTTP/2 is served or refused, and the next request is served', async () => {
    const stand = await setUp();
    const port = await startHttpsPort(stand.ingress);
    cleanups.push(() => port.stop());
    const session = visitHttp2({ port });
    cleanups.push(() => session.destroy());
    const outcome = await ask(session, { ':path': '/', ...Object.fromEntries(fieldsOf(count - 1)) }).then(
      ({ status }) => status,
      () => 'reset',
    );
    expect(allowed(count)).toContain(outcome);
    expect((await ask(session, { ':path': '/' })).status).toBe(200);
  });
});

it.each(['[::1', 'a/b', '@', 'a@b', 'a b', '', ':', 'x:y', '\u00fc', 'a#b', 'a?b', '%00'])(
  'a Host of the tunnel that is %j ends no process',
  async (hostHeader) => {
    const stand = await setUp(hostHeader);
    const answer = await talk(stand.port, 'GET / HTTP/1.1\r\nHost: web.localhost\r\nConnection: close\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 (?:200|502) /);
    expect(stand.ingress.connections).toBeLessThanOrEqual(1);
  },
);
