// Tests of own domains from end to end: visitors of the host of an own domain reach its tunnel over every protocol.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { WebSocket } from 'ws';
import { echoSockets, startWeb } from '../http-tunnels.fixture.ts';
import { askHttp2, askSecurely, dialHttp2, TLS_FLAGS, TRUST } from '../https-visitor.fixture.ts';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { echo, SERVICE_CN, startTlsService, visitTls } from '../tls-service.fixture.ts';
import { ask } from '../visitor.fixture.ts';

const shared = new Harness();
let stack: Stack;
beforeAll(async () => {
  stack = await shared.stack({ tls: true, tables: '[load_balancing]\nenabled = true' });
});
afterAll(() => shared.close());

/**
 * Publishes a service that returns the given text at an own domain. The tunnel uses the admin token, because the operator needs no proof
 * of ownership.
 */
const publish = async (harness: Harness, domain: string, text: string, flags: readonly string[] = []) => {
  const web = harness.use(await startWeb((request, response) => void response.end(`${text} ${request.headers.host}`)));
  const where = ['--server', stack.control, '--token-file', stack.tokenFile, ...TLS_FLAGS];
  const program = await harness.run(['http', String(web.port), '--json', '--domain', domain, ...where, ...flags]);
  const ready = await program.ready();
  return { web, program, ready, port: Number(new URL(ready.public_url.replace('*.', 'any.')).port) };
};

describe.concurrent('an own domain', () => {
  it('is served over HTTP/1.1, HTTP/2 and WebSockets, and its tunnel is labeled with the host', async ({ harness }) => {
    const { web, ready, port } = await publish(harness, 'Shop.example.org.', 'shop');
    echoSockets(web);
    expect(ready.public_url).toBe(`https://shop.example.org:${port}`);
    expect(await stack.tunnel(ready.tunnel_id)).toMatchObject({ protocol: 'http', label: 'shop.example.org' });
    for (const host of ['shop.example.org', 'SHOP.example.org', `shop.example.org.:${port}`]) {
      expect((await askSecurely({ host, port })).body.toString()).toMatch(/^shop /);
    }
    const session = dialHttp2(harness, { host: `shop.example.org:${port}`, port });
    const answer = await askHttp2(session, '/');
    expect([answer.headers[':status'], answer.body.toString().slice(0, 4)]).toEqual([200, 'shop']);
    const shop = { servername: 'shop.example.org', headers: { host: 'shop.example.org' } };
    const socket = new WebSocket(`wss://127.0.0.1:${port}/`, { rejectUnauthorized: false, ...shop });
    const heard = new Promise<string>((resolve, reject) => {
      socket.on('message', (data: Buffer) => resolve(data.toString()));
      socket.on('error', reject);
    });
    socket.on('open', () => socket.send('hello'));
    expect(await heard).toBe('hello');
    socket.terminate();
  });

  it('has priority over its wildcard, and is selected by the Host header, not by the TLS server name', async ({
    harness,
  }) => {
    const any = await publish(harness, '*.example.net', 'any');
    const { port, program } = await publish(harness, 'one.example.net', 'one');
    const said = async (host: string) => (await askSecurely({ host, port })).body.toString().split(' ', 1)[0];
    expect([await said('one.example.net'), await said('two.example.net')]).toEqual(['one', 'any']);
    expect((await askSecurely({ host: 'a.two.example.net', port })).status).toBe(404);
    expect((await askSecurely({ host: 'example.net', port })).status).toBe(404);
    expect((await askSecurely({ host: 'nobody.example.com', port })).status).toBe(404);
    expect((await askSecurely({ host: 'abcdefghijabcdefghij.localhost', port })).status).toBe(404);
    const session = dialHttp2(harness, { host: `one.example.net:${port}`, port });
    const reused = session.request({ ':path': '/', ':authority': 'two.example.net' });
    const pieces: Buffer[] = [];
    for await (const piece of reused) pieces.push(piece as Buffer);
    expect(Buffer.concat(pieces).toString()).toMatch(/^any /);
    // The client of the exact name was killed. The wildcard must not get its visitors.
    await program.kill();
    await eventually(async () => expect((await askSecurely({ host: 'one.example.net', port })).status).toBe(502));
    expect(any.ready.public_url).toBe(`https://*.example.net:${port}`);
  });

  it('is selected over HTTP/2 by a normalized :authority; a different Host or an invalid form is refused', async ({
    harness,
  }) => {
    const { port } = await publish(harness, 'one.example.edu', 'one');
    await publish(harness, 'two.example.edu', 'two');
    const session = dialHttp2(harness, { host: `one.example.edu:${port}`, port });
    const said = async (headers: Record<string, string>): Promise<string> => {
      const request = session.request({ ':path': '/', ...headers });
      let status = 0;
      request.on('response', (answer) => (status = answer[':status'] ?? 0));
      const pieces: Buffer[] = [];
      try {
        for await (const piece of request) pieces.push(piece as Buffer);
      } catch (error) {
        // From Node.js 24 on, the HTTP/2 client rejects some of the requests before they reach the edge.
        if (!(error as Error).message.includes('NGHTTP2_PROTOCOL_ERROR')) throw error;
        return 'refused';
      }
      if (status === 400) return 'refused';
      return status === 200 ? Buffer.concat(pieces).toString().slice(0, 3) : String(status);
    };
    const one = 'one.example.edu';
    const two = 'two.example.edu';
    expect([
      await said({ ':authority': one, host: two }),
      await said({ ':authority': 'TWO.example.edu.' }),
      await said({ ':authority': `user@${two}` }),
      await said({ ':authority': '*.example.edu' }),
    ]).toEqual(['refused', 'two', 'refused', 'refused']);
  });

  it('can serve a group of two tunnels', async ({ harness }) => {
    const keyFile = join(await harness.folder(), 'group-key');
    writeFileSync(keyFile, 'secret of the pool');
    const flags = ['--group', 'pool', '--group-key-file', keyFile];
    const first = await publish(harness, 'pool.example.org', 'a', flags);
    await publish(harness, 'pool.example.org', 'b', flags);
    const heard = new Set<string>();
    await eventually(async () => {
      const answer = await askSecurely({ host: 'pool.example.org', port: first.port });
      heard.add(answer.body.toString().slice(0, 1));
      expect([...heard].sort()).toEqual(['a', 'b']);
    });
  });

  it('can belong to a TLS tunnel: the edge never terminates TLS for it, even while its client is away', async ({
    harness,
  }) => {
    const service = harness.use(await startTlsService(echo));
    const flags = ['--domain', 'db.example.org', ...TLS_FLAGS];
    const tunnel = await harness.tls(stack, service.port, { flags });
    const { public_url, assigned_port: port, tunnel_id } = await tunnel.ready();
    expect(public_url).toBe(`tls://db.example.org:${port}`);
    const visitor = await visitTls(port, 'DB.example.org');
    expect(visitor.getPeerCertificate().subject?.CN).toBe(SERVICE_CN);
    expect(await ask(visitor, 'hello')).toBe('hello');
    visitor.destroy();
    await tunnel.kill();
    await eventually(async () => expect(await stack.tunnel(tunnel_id)).toBeUndefined());
    await expect(visitTls(port, 'db.example.org', TRUST)).rejects.toThrow(/ECONNRESET|closed within/);
  });
});
