// An edge with a certificate: the public address, the ports, and certificate renewal on every port.

import { writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { loadServerConfig } from '@tunnel/config/server';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import {
  eventually,
  renewedCertificate,
  type TemporaryDirectory,
  temporaryDirectory,
  testCertificate,
} from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { RawClient } from '../control/raw-client.fixture.ts';
import { createEdge } from '../edge.ts';
import type { Edge } from '../edge-interface.ts';
import { talk } from '../ingress/http/http.fixture.ts';

let directory: TemporaryDirectory;
let edge: Edge | undefined;

const write = async ({ cert, key }: { cert: string; key: string }): Promise<void> => {
  await writeFile(join(directory.path, 'cert.pem'), cert);
  await writeFile(join(directory.path, 'key.pem'), key);
};

const makeEdge = (server: object = {}): Edge => {
  const config = loadServerConfig({
    env: {},
    overrides: {
      server: {
        control_port: 0,
        api_port: 0,
        metrics_port: 0,
        http_port: 0,
        https_port: 0,
        domain: 'edge.test',
        ...server,
      },
      tls: { cert_path: join(directory.path, 'cert.pem'), key_path: join(directory.path, 'key.pem') },
    },
  });
  const logger = createLogger({ level: 'silent', format: 'json' });
  return createEdge(config, { clock: systemClock, logger, adminToken: new Secret('admin') });
};

const start = async (server?: object): Promise<Edge> => {
  edge = makeEdge(server);
  await edge.start();
  return edge;
};

beforeEach(async () => {
  directory = await temporaryDirectory();
  await write(testCertificate());
});
afterEach(async () => {
  await edge?.stop({ drainMs: 0 });
  edge = undefined;
  await directory.close();
});

const certificateOf = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerX509Certificate()?.toString() ?? '');
      socket.destroy();
    });
    socket.on('error', reject);
  });

const GET = 'GET /a?b HTTP/1.1\r\nHost: web.edge.test\r\nConnection: close\r\n\r\n';

it('clients get the https address, and plain HTTP visitors are redirected to it', async () => {
  const { addresses } = await start();
  const client = await RawClient.connect(addresses.control.port, { scheme: 'wss' });
  client.auth('admin');
  await client.next('AuthOk');
  const tunnel = await client.registered({ protocol: 'http', subdomain: 'web' });
  expect(tunnel.public_url).toBe(`https://web.edge.test:${addresses.https?.port}`);
  const answer = await talk(addresses.http.port, GET);
  expect(answer).toMatch(/^HTTP\/1\.1 308 /);
  expect(answer).toContain(`location: ${tunnel.public_url}/a?b\r\n`);
  client.ws.terminate();
});

it('plain HTTP visitors are served with plain_http = proxy', async () => {
  const { addresses } = await start({ plain_http: 'proxy' });
  expect(await talk(addresses.http.port, GET)).toContain('x-tunnel-error: TUNNEL_NOT_FOUND');
});

it('new connections on every port get a renewed certificate', async () => {
  const { addresses } = await start();
  const ports = [addresses.control.port, addresses.https?.port ?? 0];
  const shown = () => Promise.all(ports.map(certificateOf));
  expect(await shown()).toEqual([testCertificate().cert, testCertificate().cert]);
  const client = await RawClient.connect(addresses.control.port, { scheme: 'wss' });
  await write(renewedCertificate());
  const { cert } = renewedCertificate();
  await eventually(async () => expect(await shown()).toEqual([cert, cert]), { timeoutMs: 30_000, intervalMs: 100 });
  client.auth('admin');
  await client.next('AuthOk');
  client.ws.terminate();
});

/** Requests GET /api/status over TLS and verifies the certificate against `ca`. */
const statusOf = (port: number, ca: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const request = get({ host: '127.0.0.1', port, path: '/api/status', ca, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.on('error', reject);
  });

it('a REST port that other machines can reach speaks only TLS, and gets renewed certificates', async () => {
  const { addresses } = await start({ api_host: '0.0.0.0' });
  const { port, tls } = addresses.api;
  expect(tls).toBe(true);
  const { cert } = testCertificate();
  expect(await statusOf(port, cert)).toBe(200);
  await expect(statusOf(port, renewedCertificate().cert)).rejects.toThrow(/certificate|signature|issuer/);
  const inClear = talk(port, 'GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
  expect(await inClear.catch(() => 'reset')).not.toContain('HTTP/1.1');
  expect(await statusOf(port, cert)).toBe(200);
  await write(renewedCertificate());
  await eventually(async () => expect(await certificateOf(port)).toBe(renewedCertificate().cert), {
    timeoutMs: 30_000,
    intervalMs: 100,
  });
});

it('a REST port on loopback is unencrypted', async () => {
  const { addresses } = await start();
  expect(addresses.api.tls).toBe(false);
  expect((await fetch(`http://127.0.0.1:${addresses.api.port}/api/status`)).status).toBe(200);
});

it('an edge does not start if the certificate does not cover the host in api_url', async () => {
  const wrong = makeEdge({ api_host: '0.0.0.0', api_url: 'https://edge.example:4041' });
  await expect(wrong.start()).rejects.toMatchObject({ code: 'CONFIG_API_URL_HOST' });
  await start({ api_host: '0.0.0.0', api_url: 'https://localhost:4041' });
});

it('an edge does not start when a port is taken, and leaves no other port open', async () => {
  const taken = createServer();
  const free = createServer();
  const listen = (server: Server): Promise<number> =>
    new Promise((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port));
    });
  const https_port = await listen(taken);
  const http_port = await listen(free);
  await new Promise((resolve) => free.close(resolve));
  await expect(makeEdge({ http_port, https_port }).start()).rejects.toThrow('[server] https_port');
  await expect(makeEdge({ http_port, control_port: https_port }).start()).rejects.toThrow('[server] control_port');
  await expect(talk(http_port, GET)).rejects.toThrow('ECONNREFUSED');
  await new Promise((resolve) => taken.close(resolve));
});
