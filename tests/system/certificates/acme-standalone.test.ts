// An edge without a platform gets its certificates by itself: by both challenges, on all its ports, and again without a failed request.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { Agent } from 'node:https';
import type { AddressInfo } from 'node:net';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import type { Harness } from '../harness.fixture.ts';
import { it } from '../system-test.fixture.ts';
import { AcmeEdge, DOMAIN } from './acme-edge.fixture.ts';

const KEY = 'key-of-alice';
const keys = [{ account: 'alice', sha256: createHash('sha256').update(KEY).digest('hex'), reserved: ['shop'] }];
const SHOP = `shop.${DOMAIN}`;
const soon = { timeoutMs: 30_000, intervalMs: 50 };

const service = async (harness: Harness): Promise<number> => {
  const server = createServer((_request, response) => void response.end('hello'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  harness.use({
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
  return (server.address() as AddressInfo).port;
};

it('tls-alpn-01 gets the certificates of the domain and of reserved names, on every port', async ({ harness }) => {
  const stage = await AcmeEdge.open(harness, { auth: { keys } });
  await stage.start();
  const { control } = stage.running.addresses;
  await eventually(() => stage.serialOf(DOMAIN), soon);
  // The same one for clients, who were refused until then and never spoken to in clear.
  expect(await stage.serialOf(DOMAIN, control.port)).toBe(await stage.serialOf(DOMAIN));
  await eventually(() => stage.serialOf(SHOP), soon);
  expect(stage.authority.orders.map(({ names }) => names.join()).sort()).toEqual([SHOP, DOMAIN]);
  const client = await stage.client(KEY);
  const tunnel = await client.open({ protocol: 'http', localPort: await service(harness), subdomain: 'shop' });
  expect(tunnel.publicUrl).toBe(`https://${SHOP}:${stage.target.tlsPort}`);
  expect([await stage.ask(SHOP), await stage.askHttp2(SHOP)]).toEqual([200, 200]);
  // What no certificate covers is served in clear, and refused in TLS.
  const other = await client.open({ protocol: 'http', localPort: await service(harness), subdomain: 'other' });
  expect(other.publicUrl).toBe(`http://other.${DOMAIN}:${stage.target.httpPort}`);
  await expect(stage.ask(`other.${DOMAIN}`)).rejects.toThrow(/unrecognized name/i);
});
