// Test of a login over HTTPS and of the requests that follow over HTTP/1.1 and HTTP/2: no sibling can set the cookie, and the cookie
// never reaches the service.
import type { OutgoingHttpHeaders } from 'node:http2';
import { expect } from 'vitest';
import { openHttp } from '../http-tunnels.fixture.ts';
import { dialHttp2, TLS_FLAGS } from '../https-visitor.fixture.ts';
import { it } from '../in-process.fixture.ts';
import { askUrl, Browser, openLoginTunnel } from './login.fixture.ts';

it('a login over HTTPS accepts only its __Host- cookie, over HTTP/1.1 and HTTP/2, and hides the cookie from the service', async ({
  harness,
}) => {
  const stack = await harness.stack({ tls: true });
  const any = await openHttp(harness, stack, 1, [...TLS_FLAGS, '--no-inspect']);
  const httpsPort = any.endpoint.port;
  const { url, reached } = await openLoginTunnel(harness, stack, { name: 'sealed', httpsPort });
  const ann = new Browser();
  // A visitor of plain HTTP is redirected to HTTPS before the login begins.
  const plain = `http://sealed.localhost:${new URL(stack.run.http_url).port}`;
  const led = await ann.open(`${plain}/deep?x=1`);
  expect([led.status, led.headers.location, led.headers['set-cookie']]).toEqual([308, `${url}/deep?x=1`, undefined]);

  const back = await ann.logIn(`${url}/deep?x=1`, 'ann@example.com');
  expect([back.status, back.headers.location, back.headers['cache-control']]).toEqual([302, '/deep?x=1', 'no-store']);
  const [set = ''] = back.headers['set-cookie'] ?? [];
  expect(set).toMatch(/^__Host-tunnel_login=[\w-]+; Path=\/; Max-Age=28800; HttpOnly; SameSite=Lax; Secure$/);
  const value = ann.cookiesAt(url).get('__Host-tunnel_login') ?? '';
  expect([...ann.cookiesAt(url).keys()]).toEqual(['__Host-tunnel_login']);

  const session = dialHttp2(harness, { host: new URL(url).host, port: httpsPort });
  const statusOf = (headers: OutgoingHttpHeaders): Promise<number> =>
    new Promise((resolve, reject) => {
      const stream = session.request(headers);
      stream.on('response', (told) => resolve(Number(told[':status']))).on('error', reject);
      stream.resume().end();
    });
  for (const cookie of [`tunnel_login=${value}`, `__host-tunnel_login=${value}`, `__Host-tunnel_login=${value}x`]) {
    expect((await askUrl(`${url}/`, { headers: { cookie } })).status).toBe(401);
    expect(await statusOf({ cookie })).toBe(401);
  }
  // The session of HTTPS does not open the same tunnel over plain HTTP either.
  expect((await askUrl(`${plain}/`, { headers: { cookie: `tunnel_login=${value}` } })).status).not.toBe(200);
  expect(reached).toEqual([]);

  const good = `__Host-tunnel_login=${value}`;
  expect((await ann.send(`${url}/one`)).text).toBe('served /one');
  expect(await statusOf({ ':path': '/two', cookie: ['a=1', good, 'b=2', `tunnel_login=${value}`] })).toBe(200);
  expect(await statusOf({ ':path': '/three', ':method': 'HEAD', cookie: good })).toBe(200);
  expect(reached.map(({ url: path }) => path)).toEqual(['/one', '/two', '/three']);
  expect(JSON.stringify(reached)).not.toContain(value);
  expect(reached[1]?.raw).toContain('a=1; b=2');
  const foreign = { ':path': '/four', ':method': 'POST', cookie: good, origin: 'https://evil.localhost' };
  expect(await statusOf(foreign)).toBe(403);
  expect(await statusOf({ ...foreign, origin: url })).toBe(200);
});
