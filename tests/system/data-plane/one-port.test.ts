// Tests of real clients at the public ports of visitors: by ALPN, by path through a proxy that terminates TLS, and unencrypted. Other
// tests close the public ports to clients.

import { readFileSync } from 'node:fs';
import { request as secureRequest } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { createServer as createTlsServer, type Server } from 'node:tls';
import { deterministicBytes, eventually, hashOf, startEchoServer, testCertificate } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { askHttp, openHttp, startWeb } from '../http-tunnels.fixture.ts';
import { askSecurely, TLS_FLAGS, TRUST } from '../https-visitor.fixture.ts';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { sendAndReadAll } from '../visitor.fixture.ts';

const BYTES = deterministicBytes(3_000_000, 21);

const shared = new Harness();
let secure: Stack;
let plain: Stack;
let closed: Stack;
beforeAll(async () => {
  [secure, plain, closed] = await Promise.all([
    shared.stack({ tls: true, server: 'plain_http = "proxy"' }),
    shared.stack(),
    shared.stack({ tls: true, server: 'control_on_public = false' }),
  ]);
});
afterAll(() => shared.close());

/** Returns `localhost` with the port of a public URL of the stack. */
const at = (stack: Stack, which: 'http_url' | 'https_url'): string =>
  `localhost:${new URL((stack.run as unknown as Record<string, string>)[which] ?? '').port}`;

const expectServed = async (port: number): Promise<void> =>
  expect(hashOf(await sendAndReadAll(port, BYTES))).toBe(hashOf(BYTES));

/** Starts a relay like a company proxy or nginx: the relay terminates TLS and ALPN, and passes the decrypted bytes to another port. */
const startTlsRelay = async (
  target: number,
): Promise<{ port: number; alpn: string[]; cut(): void; close(): Promise<void> }> => {
  const { cert, key } = testCertificate();
  const alpn: string[] = [];
  const sockets = new Set<Socket>();
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const server: Server = createTlsServer({ cert, key, ALPNProtocols: ['http/1.1'] }, (socket) => {
    alpn.push(String(socket.alpnProtocol));
    sockets.add(socket.on('close', () => sockets.delete(socket)));
    const onward = connect(target, '127.0.0.1');
    socket.pipe(onward).pipe(socket);
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      one.on('error', () => {});
      one.on('close', () => other.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    server.close();
    cut();
  };
  return { port, alpn, cut, close };
};

describe.concurrent('a client connects', () => {
  it('through the HTTPS port with all its carriers, while tunnels keep control-plane paths for their local service', async ({
    harness,
  }) => {
    const echo = harness.use(await startEchoServer());
    const program = await harness.tcp(secure, echo.port, { server: at(secure, 'https_url'), flags: TLS_FLAGS });
    await expectServed((await program.ready()).assigned_port);
    const web = harness.use(await startWeb((request, response) => void response.end(`${request.url}`)));
    const flags = [...TLS_FLAGS, '--server', at(secure, 'https_url')];
    const { endpoint } = await openHttp(harness, secure, web.port, flags);
    // On the host of a tunnel, paths of the control plane belong to the local service.
    for (const path of ['/_control', '/_speed?bytes=1', '/one']) {
      expect((await askSecurely(endpoint, path)).text).toBe(path);
    }
  });

  it('by path through a TLS proxy that does not know the ALPN protocol tunnel/1', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const relay = harness.use(await startTlsRelay(Number(new URL(secure.run.http_url).port)));
    const program = await harness.tcp(secure, echo.port, { server: `localhost:${relay.port}`, flags: TLS_FLAGS });
    await expectServed((await program.ready()).assigned_port);
    // The control connection and two carriers.
    await eventually(() => expect(relay.alpn).toEqual(Array.from({ length: 3 }, () => 'http/1.1')));
  });

  it('unencrypted through the HTTP port of an edge on localhost', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const program = await harness.tcp(plain, echo.port, { server: at(plain, 'http_url') });
    await expectServed((await program.ready()).assigned_port);
  });

  it('again through the same proxy after a cut of all connections, and keeps its port', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const relay = harness.use(await startTlsRelay(Number(new URL(secure.run.http_url).port)));
    const program = await harness.tcp(secure, echo.port, { server: `localhost:${relay.port}`, flags: TLS_FLAGS });
    const { assigned_port: port } = await program.ready();
    relay.cut();
    await program.waitFor('reconnected');
    await expectServed(port);
  });
});

describe.concurrent('public ports closed to clients', () => {
  it('with control_on_public = false the client reports CLIENT_NOT_AN_EDGE, and the control port still works', async ({
    harness,
  }) => {
    const echo = harness.use(await startEchoServer());
    const lost = await harness.tcp(closed, echo.port, { server: at(closed, 'https_url'), flags: TLS_FLAGS });
    expect(await lost.exitCode()).not.toBe(0);
    expect([...lost.stdout, ...lost.stderr].join('\n')).toContain('CLIENT_NOT_AN_EDGE');
    const program = await harness.tcp(closed, echo.port, { flags: TLS_FLAGS });
    await expectServed((await program.ready()).assigned_port);
  });

  it('no tunnel can take the host name of the edge, where visitors get a 404', async ({ harness }) => {
    const web = harness.use(await startWeb((_request, response) => void response.end('mine')));
    for (const name of ['', '.', 'localhost.', '@']) {
      const program = await harness.run([
        'http',
        String(web.port),
        '--json',
        '--subdomain',
        name,
        '--server',
        plain.control,
        '--token-file',
        plain.tokenFile,
      ]);
      expect(await program.exitCode()).not.toBe(0);
    }
    const port = Number(new URL(plain.run.http_url).port);
    expect((await askHttp({ host: `localhost:${port}`, port }, { path: '/' })).status).toBe(404);
  });
});

it('the startup text names the port shared by visitors and clients', () => {
  const said = secure.program.stdout.join('\n');
  expect(said).toContain(`(TLS), and ${at(secure, 'https_url')}`);
  expect(said).toContain(`--server ${at(secure, 'https_url')} --tls`);
  expect(closed.program.stdout.join('\n')).not.toContain(`--server ${at(closed, 'https_url')}`);
});

it('/_speed needs a valid key, sends at most 16 MiB, and returns 429 after four full responses', async () => {
  const token = readFileSync(secure.tokenFile, 'utf8').trim();
  const port = Number(at(secure, 'https_url').split(':')[1]);
  const ask = (bytes: number, authorization: string): Promise<[number, number]> =>
    new Promise((resolve, reject) => {
      const headers = { authorization, host: 'localhost' };
      secureRequest(
        { ...TRUST, host: '127.0.0.1', port, path: `/_speed?bytes=${bytes}`, headers, agent: false },
        (response) => {
          let received = 0;
          response.on('data', (chunk: Buffer) => {
            received += chunk.length;
          });
          response.on('end', () => resolve([response.statusCode ?? 0, received]));
        },
      )
        .on('error', reject)
        .end();
    });
  for (let n = 0; n < 4; n += 1) expect(await ask(16_777_216, `Bearer ${token}`)).toEqual([200, 16_777_216]);
  expect((await ask(1, `Bearer ${token}`))[0]).toBe(429);
  expect((await ask(16_777_217, `Bearer ${token}`))[0]).toBe(400);
  expect((await ask(1, 'Bearer nobody'))[0]).toBe(401);
});
