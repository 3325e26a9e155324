// Test of nested names at an edge with a certificate for a single label: the edge announces and serves them over plain HTTP.
import { join } from 'node:path';
import { expect } from 'vitest';
import { ROOT } from '../../repo/checkout.fixture.ts';
import { askHttp, openHttp, startWeb } from '../http-tunnels.fixture.ts';
import { it } from '../in-process.fixture.ts';

/** Folder with the certificate for *.edge.test. */
const FIXTURES = join(ROOT, 'packages/testkit/fixtures/tls');
const CERT = join(FIXTURES, 'renewed-cert.pem');

it('nested names without a certificate are served over plain HTTP, and their client gets a warning', async ({
  harness,
}) => {
  const stack = await harness.stack({
    server: 'domain = "edge.test"',
    tables: `[tls]\ncert_path = "${CERT}"\nkey_path = "${join(FIXTURES, 'renewed-key.pem')}"`,
  });
  const web = harness.use(await startWeb((request, response) => void response.end(`served ${request.headers.host}`)));
  const flags = (subdomain: string): string[] => ['--tls', '--ca-file', CERT, '--subdomain', subdomain];
  const port = Number(new URL(stack.run.http_url).port);
  const visitPlainly = (label: string) => askHttp({ host: `${label}.edge.test:${port}`, port });

  // The operator serves the name in a first client, and the names below it in further clients.
  const own = await openHttp(harness, stack, web.port, flags('shop'));
  expect([own.ready.public_url, own.ready['warnings']]).toEqual([
    expect.stringMatching(/^https:\/\/shop\.edge\.test/),
    [],
  ]);
  expect((await visitPlainly('shop')).status).toBe(308);
  for (const [subdomain, label] of [
    ['a.shop', 'a.shop'],
    ['*.shop', 'b.shop'],
  ] as const) {
    const { ready } = await openHttp(harness, stack, web.port, flags(subdomain));
    expect(ready.public_url).toBe(`http://${subdomain}.edge.test:${port}`);
    expect(ready['warnings']).toEqual([`no certificate for ${subdomain}.edge.test yet`]);
    expect((await visitPlainly(label)).text).toBe(`served ${label}.edge.test:${port}`);
  }
});
