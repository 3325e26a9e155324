// Tests of an edge without a platform that orders certificates: by tls-alpn-01 and by http-01, for all ports, and with renewals that fail
// no request.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { Agent } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import type { Harness } from '../harness.fixture.ts';
import { it } from '../in-process.fixture.ts';
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

it('a standalone edge gets certificates for its domain and reserved names by tls-alpn-01 and serves them on every port', async ({
  harness,
}) => {
  const stage = await AcmeEdge.open(harness, { auth: { keys } });
  await stage.start();
  const { control } = stage.running.addresses;
  await eventually(() => stage.serialOf(DOMAIN), soon);
  // The control port serves clients with the same certificate. Before the certificate was issued, clients were refused, never served
  // unencrypted.
  expect(await stage.serialOf(DOMAIN, control.port)).toBe(await stage.serialOf(DOMAIN));
  await eventually(() => stage.serialOf(SHOP), soon);
  expect(stage.authority.orders.map(({ names }) => names.join()).sort()).toEqual([SHOP, DOMAIN]);
  const client = await stage.client(KEY);
  const tunnel = await client.open({ protocol: 'http', localPort: await service(harness), subdomain: 'shop' });
  expect(tunnel.publicUrl).toBe(`https://${SHOP}:${stage.target.tlsPort}`);
  expect([await stage.ask(SHOP), await stage.askHttp2(SHOP)]).toEqual([200, 200]);
  // A host without a certificate is served over plain HTTP and refused over TLS.
  const other = await client.open({ protocol: 'http', localPort: await service(harness), subdomain: 'other' });
  expect(other.publicUrl).toBe(`http://other.${DOMAIN}:${stage.target.httpPort}`);
  await expect(stage.ask(`other.${DOMAIN}`)).rejects.toThrow(/unrecognized name/i);
});

/** Waits for the TLS session ticket of a connection that is being read, then closes the connection. */
const ticketOf = (socket: TLSSocket): Promise<Buffer> =>
  new Promise((resolve) => {
    socket.once('session', (session) => {
      socket.destroy();
      resolve(session);
    });
  });

it('a renewal fails no request, names the certificate being replaced, and keeps TLS session tickets valid', async ({
  harness,
}) => {
  const stage = await AcmeEdge.open(harness, { auth: { keys } });
  await stage.start();
  const first = await eventually(() => stage.serialOf(SHOP), soon);
  const client = await stage.client(KEY);
  await client.open({ protocol: 'http', localPort: await service(harness), subdomain: 'shop' });
  const kept = new Agent({ keepAlive: true, maxSockets: 1 });
  harness.use({ close: async () => kept.destroy() });
  const ticket = await ticketOf(await stage.shakeHands(SHOP));
  let isOver = false;
  const statuses: number[] = [];
  const visits = (async () => {
    while (!isOver) statuses.push(await stage.ask(SHOP), await stage.ask(SHOP, kept));
  })();
  expect((await stage.rest('/api/certificates/renew', { name: SHOP })).status).toBe(202);
  const second = await eventually(async () => {
    const serial = await stage.serialOf(SHOP);
    expect(serial).not.toBe(first);
    return serial;
  }, soon);
  isOver = true;
  await visits;
  expect([new Set(statuses), statuses.length > 4]).toEqual([new Set([200]), true]);
  const resumed = await stage.shakeHands(SHOP, undefined, ticket);
  expect(resumed.isSessionReused()).toBe(true);
  resumed.destroy();
  const renewal = stage.authority.orders.at(-1);
  expect([renewal?.names, renewal?.replaces]).toEqual([[SHOP], expect.stringContaining('.')]);
  expect(renewal?.certificate?.serial).toBe(second);
  const [shown] = ((await (await stage.rest('/api/certificates')).json()) as { names: string[] }[]).filter(
    ({ names }) => names[0] === SHOP,
  );
  expect(shown).toMatchObject({ source: 'acme', state: 'valid', last_error: null });
  const metrics = await stage.metrics();
  expect(metrics).toContain('tunnel_certificates{state="valid"} 2');
  expect(metrics).toContain('tunnel_acme_orders_total{result="issued"} 3');
  expect(metrics).toMatch(new RegExp(`tunnel_certificate_expires_seconds\\{name="${DOMAIN}"\\} \\d+`));
  expect(metrics).toMatch(/tunnel_tls_connections_total\{kind="challenge"\} [1-9]/);
});

it('the edge answers http-01 on every host and passes unknown challenge tokens to the tunnel over plain HTTP', async ({
  harness,
}) => {
  const stage = await AcmeEdge.open(harness, { auth: { keys } }, { challenges: ['http-01'] });
  await stage.start();
  await eventually(() => stage.serialOf(SHOP), soon);
  const client = await stage.client(KEY);
  await client.open({ protocol: 'http', localPort: await service(harness), subdomain: 'shop' });
  const asked = await plain(stage.target.httpPort, SHOP, '/.well-known/acme-challenge/a-token-of-the-service');
  expect(asked).toMatch(/^HTTP\/1\.1 200 [^]*hello$/);
  // Any other path is redirected to the HTTPS port.
  expect(await plain(stage.target.httpPort, SHOP, '/')).toMatch(/^HTTP\/1\.1 308 /);
});

it('a restarted edge serves its stored certificate, and its disk holds no unencrypted key', async ({ harness }) => {
  const stage = await AcmeEdge.open(harness);
  await stage.start();
  const serial = await eventually(() => stage.serialOf(DOMAIN), soon);
  await stage.stop();
  await stage.start();
  expect([await stage.serialOf(DOMAIN), stage.authority.orders.length]).toEqual([serial, 1]);
  const found = spawnSync('grep', ['-rl', 'PRIVATE KEY', stage.dataDir], { encoding: 'utf8' }).stdout;
  expect(found).toBe('');
});

it('before the first certificate, TLS handshakes fail, the control port speaks no plain HTTP, and clients keep retrying', async ({
  harness,
}) => {
  const stage = await AcmeEdge.open(harness);
  stage.authority.hangs = true;
  await stage.start();
  const { control } = stage.running.addresses;
  await expect(stage.shakeHands(DOMAIN)).rejects.toThrow(/unrecognized name/i);
  await expect(stage.shakeHands(DOMAIN, control.port)).rejects.toThrow(/handshake failure/i);
  expect(await plain(control.port, DOMAIN, '/_control').catch(() => 'reset')).not.toContain('HTTP/');
  const client = stage.client();
  stage.authority.hangs = false;
  await client;
});

const plain = (port: number, host: string, path: string): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    });
    socket.on('data', (chunk) => {
      text += chunk.toString();
    });
    socket.on('error', reject).on('close', () => resolve(text));
  });
