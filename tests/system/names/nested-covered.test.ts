// Test of nested names over HTTPS with a matching certificate. Visitors verify the host that they request, as browsers do.
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { ROOT } from '../../repo/checkout.fixture.ts';
import { type Answer, askHttp, openHttp, startWeb, wholeAnswer } from '../http-tunnels.fixture.ts';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';

const CERT = join(ROOT, 'packages/testkit/fixtures/tls/nested-cert.pem');
const KEY = join(ROOT, 'packages/testkit/fixtures/tls/nested-key.pem');

const shared = new Harness();
let stack: Stack;
beforeAll(async () => {
  stack = await shared.stack({ tables: `[tls]\ncert_path = "${CERT}"\nkey_path = "${KEY}"` });
});
afterAll(() => shared.close());

const serve = async (harness: Harness, subdomain: string): Promise<string> => {
  const web = harness.use(await startWeb((_, response) => void response.end(subdomain)));
  const flags = ['--tls', '--ca-file', CERT, '--subdomain', subdomain];
  return (await openHttp(harness, stack, web.port, flags)).ready.public_url;
};

/** Sends a request that verifies certificate chain and host by Node's own rules. */
const visit = (host: string, port: number): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const options = { ca: readFileSync(CERT), hostname: '127.0.0.1', port, servername: host, agent: false };
    const sent = request({ ...options, headers: { host: `${host}:${port}` } });
    sent.on('response', (response) => void wholeAnswer(response).then(resolve, reject));
    sent.on('error', reject).end();
  });

it('a wildcard and an exact name below it are served over HTTPS with a certificate for both', async ({ harness }) => {
  const urls: string[] = [];
  for (const name of ['shop', '*.shop', 'a.shop']) urls.push(await serve(harness, name));
  const port = Number(urls[0]?.split(':').at(-1)?.replace('/', ''));
  expect(urls).toEqual(['shop', '*.shop', 'a.shop'].map((name) => `https://${name}.localhost:${port}`));
  const reached = async (host: string): Promise<string> => (await visit(host, port)).text;
  expect(await reached('shop.localhost')).toBe('shop');
  expect(await reached('a.shop.localhost')).toBe('a.shop');
  expect(await reached('b.shop.localhost')).toBe('*.shop');
  expect(await reached('xn--mnchen-3ya.shop.localhost')).toBe('*.shop');
  // The wildcard of the certificate covers a single label, like the wildcard of the tunnel.
  await expect(visit('b.a.shop.localhost', port)).rejects.toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  // Plain HTTP redirects to HTTPS.
  const plainPort = Number(new URL(stack.run.http_url).port);
  const led = await askHttp({ host: `b.shop.localhost:${plainPort}`, port: plainPort });
  expect([led.status, led.headers.location]).toEqual([308, `https://b.shop.localhost:${port}/`]);
});
