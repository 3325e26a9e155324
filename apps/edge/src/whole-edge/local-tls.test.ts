// An edge with a local certificate authority: https for localhost names, with a certificate issued at the first visit of each name.
// Clients still connect unencrypted.
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { loadServerConfig } from '@tunnel/config/server';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { RawClient } from '../control/raw-client.fixture.ts';
import { createEdge } from '../edge.ts';
import type { Edge } from '../edge-interface.ts';

let directory: TemporaryDirectory;
let edge: Edge;

const start = async (): Promise<void> => {
  const ports = { control_port: 0, api_port: 0, metrics_port: 0, http_port: 0, https_port: 0 };
  const config = loadServerConfig({ env: {}, overrides: { server: ports, tls: { local_ca: true } } });
  const logger = createLogger({ level: 'silent', format: 'json' });
  edge = createEdge(config, { clock: systemClock, logger, adminToken: new Secret('admin'), dataDir: directory.path });
  await edge.start();
};

beforeEach(async () => {
  directory = await temporaryDirectory();
  await start();
});

afterEach(async () => {
  await edge.stop({ drainMs: 0 });
  await directory.close();
});

/** Returns the certificate for the name that a client accepts if it trusts the local authority, or the error code. */
const shown = async (servername: string | null): Promise<X509Certificate | string> => {
  const ca = await readFile(join(directory.path, 'local-ca', 'ca.pem'), 'utf8');
  const named = servername === null ? {} : { servername };
  const socket: TLSSocket = connect({ host: '127.0.0.1', port: edge.addresses.https?.port ?? 0, ca, ...named });
  return new Promise<X509Certificate | string>((resolve) => {
    socket.once('secureConnect', () => resolve(socket.getPeerX509Certificate() as X509Certificate));
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  }).finally(() => socket.destroy());
};

const serialOf = (one: X509Certificate | string): string => (typeof one === 'string' ? one : one.serialNumber);

it('localhost, its address and each name below localhost get a certificate, and later the same certificate', async () => {
  expect(await shown('localhost')).toBeInstanceOf(X509Certificate);
  expect(await shown(null)).toBeInstanceOf(X509Certificate);
  const first = await shown('shop.localhost');
  const second = await shown('shop.localhost');
  expect(first).toBeInstanceOf(X509Certificate);
  expect((first as X509Certificate).subjectAltName).toBe('DNS:shop.localhost');
  expect(serialOf(second)).toBe(serialOf(first));
  expect(await shown('a.shop.localhost')).toBeInstanceOf(X509Certificate);
});

it('simultaneous visitors of a name share one certificate, even if some visitors leave', async () => {
  const leavers = Array.from({ length: 20 }, () => {
    const port = edge.addresses.https?.port ?? 0;
    return connect({ host: '127.0.0.1', port, servername: 'many.localhost', rejectUnauthorized: false });
  });
  for (const [index, socket] of leavers.entries()) {
    socket.on('error', () => {});
    if (index % 2 === 0) setImmediate(() => socket.destroy());
  }
  const all = await Promise.all(Array.from({ length: 20 }, () => shown('many.localhost')));
  for (const socket of leavers) socket.destroy();
  expect(new Set(all.map(serialOf)).size).toBe(1);
  expect(all[0]).toBeInstanceOf(X509Certificate);
});

it('names outside localhost get no certificate', async () => {
  expect(await shown('example.com')).toBe('ERR_SSL_TLSV1_UNRECOGNIZED_NAME');
  expect(await shown('notlocalhost')).toBe('ERR_SSL_TLSV1_UNRECOGNIZED_NAME');
});

it('the local authority survives a restart, and signs certificates afterwards', async () => {
  const before = await readFile(join(directory.path, 'local-ca', 'ca.pem'), 'utf8');
  await edge.stop({ drainMs: 0 });
  await start();
  expect(await readFile(join(directory.path, 'local-ca', 'ca.pem'), 'utf8')).toBe(before);
  expect(await shown('shop.localhost')).toBeInstanceOf(X509Certificate);
});

it('tunnels get https addresses, the control port stays unencrypted, and the certificate is listed', async () => {
  const client = await RawClient.connect(edge.addresses.control.port);
  client.auth('admin');
  await client.next('AuthOk');
  const registered = await client.registered({ protocol: 'http', subdomain: 'shop' });
  expect(registered.public_url).toBe(`https://shop.localhost:${edge.addresses.https?.port}`);
  client.ws.terminate();
  const { port } = edge.addresses.api;
  const list = await fetch(`http://127.0.0.1:${port}/api/certificates`, { headers: { authorization: 'Bearer admin' } });
  expect(await list.json()).toMatchObject([{ names: ['localhost'], source: 'local-ca', state: 'valid' }]);
});
