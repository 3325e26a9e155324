// Tests of `tunnel http`: names, lifetime, and the visitor requests that reach the local service.
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { eventually, startEchoServer, testCertificate } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import {
  askHttp,
  endpointOf,
  openHttp,
  runHttp,
  startWeb,
  type WebService,
  wholeBody,
} from '../http-tunnels.fixture.ts';
import { Harness, it } from '../in-process.fixture.ts';
import { type Stack, TLS_CERT } from '../stack.fixture.ts';
import type { ReadyEvent } from '../tunnel-program.fixture.ts';
import { sendAndReadAll } from '../visitor.fixture.ts';

const shared = new Harness();
let stack: Stack;
/** Local service that returns every request as JSON. */
let mirror: WebService;
beforeAll(async () => {
  stack = await shared.stack();
  mirror = shared.use(
    await startWeb(async (request, response) => {
      const body = await wholeBody(request);
      const { method, url, headers } = request;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ method, url, headers, bytes: body.length }));
    }),
  );
});
afterAll(() => shared.close());

interface Mirrored {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly bytes: number;
}

const mirrored = (text: string): Mirrored => JSON.parse(text) as Mirrored;

describe.concurrent('a request', () => {
  it('reaches the local service as sent, with forwarding headers, and is reported as an event', async ({ harness }) => {
    const { tunnel, ready, endpoint } = await openHttp(harness, stack, mirror.port);
    expect(ready).toMatchObject({ protocol: 'http', assigned_port: null, local: `127.0.0.1:${mirror.port}` });
    expect(ready.public_url).toMatch(/^http:\/\/[a-z0-9-]+\.localhost:\d+\/?$/);
    const headers = { 'x-forwarded-for': '203.0.113.9', 'x-forwarded-proto': 'gopher', 'x-own': 'kept', te: 'gzip' };
    const answer = await askHttp(endpoint, {
      method: 'POST',
      path: '/a/b?c=d&token=hidden',
      headers,
      body: 'twelve bytes',
    });
    expect(answer.status).toBe(200);
    const seen = mirrored(answer.text);
    expect(seen).toMatchObject({ method: 'POST', url: '/a/b?c=d&token=hidden', bytes: 12 });
    expect(seen.headers).toMatchObject({
      host: endpoint.host,
      'x-own': 'kept',
      'x-forwarded-for': '203.0.113.9, 127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': endpoint.host,
    });
    expect(seen.headers['te']).toBeUndefined();
    expect(await tunnel.waitFor('request')).toMatchObject({
      method: 'POST',
      path: '/a/b?c=d&token=…',
      status: 200,
      request_bytes: 12,
      response_bytes: answer.body.length,
      aborted: false,
    });
    expect(await stack.tunnel(ready.tunnel_id)).toMatchObject({
      protocol: 'http',
      label: endpoint.host.split('.')[0],
      request_count: 1,
    });
  });

  it('that got a response is reported even if the client is stopped right after it', async ({ harness }) => {
    const { tunnel, endpoint } = await openHttp(harness, stack, mirror.port);
    const paths = Array.from({ length: 60 }, (_, at) => `/${at}`);
    await Promise.all(paths.map((path) => askHttp(endpoint, { path })));
    tunnel.signal('SIGTERM');
    expect(await tunnel.exitCode()).toBe(0);
    const told = tunnel.events('request').map(({ path }) => path);
    expect(told).toHaveLength(paths.length);
    expect(new Set(told)).toEqual(new Set(paths));
    expect(tunnel.stdout.at(-1)).toContain('"event":"closed"');
  });

  it('for an unknown name gets a 404: HTML for browsers, JSON for programs, and an error code', async ({ harness }) => {
    const { endpoint } = await openHttp(harness, stack, mirror.port);
    const nobody = { ...endpoint, host: `nobody.localhost:${endpoint.port}` };
    const page = await askHttp(nobody, { headers: { accept: 'text/html' } });
    expect([page.status, page.headers['x-tunnel-error']]).toEqual([404, 'TUNNEL_NOT_FOUND']);
    expect(page.text).toContain('There is no tunnel at nobody.localhost.');
    const json = await askHttp(nobody, { headers: { accept: 'application/json' } });
    expect(JSON.parse(json.text)).toMatchObject({ code: 'TUNNEL_NOT_FOUND' });
  });
});

describe.concurrent('a subdomain', () => {
  it('is granted on request, regardless of letter case', async ({ harness }) => {
    const { ready, endpoint } = await openHttp(harness, stack, mirror.port, ['--subdomain', 'MyShop']);
    expect(new URL(ready.public_url).hostname).toBe('myshop.localhost');
    expect((await askHttp({ ...endpoint, host: `MYSHOP.LocalHost:${endpoint.port}` })).status).toBe(200);
  });

  it('in use is refused: the second client exits with 4 and the first tunnel stays open', async ({ harness }) => {
    const { endpoint } = await openHttp(harness, stack, mirror.port, ['--subdomain', 'taken']);
    const second = await runHttp(harness, stack, mirror.port, ['--subdomain', 'taken', '--name', 'second']);
    expect(await second.exitCode()).toBe(4);
    expect(second.stderr[0]).toBe("tunnel: second: subdomain 'taken' is already in use");
    expect(second.stderr[1]).toMatch(
      /^ {2}Your tunnel 'http-\d+' on \S+ uses it\. To close that tunnel: `tunnel close taken`\./,
    );
    expect(second.events('error')).toMatchObject([{ code: 'TUNNEL_SUBDOMAIN_IN_USE', fatal: false }]);
    expect((await askHttp(endpoint)).status).toBe(200);
  });

  it.for([
    ['-x', 'it begins or ends with a hyphen'],
    ['a.b.c', 'it has more than two labels'],
    ['a_b', 'only letters a-z, digits and hyphens are allowed'],
    ['x'.repeat(64), 'it is longer than 63 characters'],
    ['Admin', 'it is reserved'],
  ] as const)(
    'that is not valid is refused with exit code 4 and the reason: %s',
    async ([name, reason], { harness }) => {
      // The error message shows at most 40 characters of an invalid name.
      const shown = name.slice(0, 40);
      const program = await runHttp(harness, stack, mirror.port, [`--subdomain=${name}`]);
      expect(await program.exitCode()).toBe(4);
      expect(program.stderr[0]).toBe(`tunnel: http-${mirror.port}: subdomain '${shown}' is not valid: ${reason}`);
    },
  );
});

describe.concurrent('a client that ends', () => {
  it('by kill -9 keeps its name until it returns, and visitors get a 502 meanwhile', async ({ harness }) => {
    const home = await harness.folder();
    const first = await openHttp(harness, stack, mirror.port, [], { home });
    await first.tunnel.kill();
    await eventually(async () => {
      const answer = await askHttp(first.endpoint);
      expect([answer.status, answer.headers['x-tunnel-error']]).toEqual([502, 'TUNNEL_AWAY']);
    });
    const name = first.endpoint.host.split('.')[0] ?? '';
    const thief = await runHttp(harness, stack, mirror.port, ['--subdomain', name]);
    expect(await thief.exitCode()).toBe(4);
    const second = await openHttp(harness, stack, mirror.port, [], { home });
    expect(second.ready.public_url).toBe(first.ready.public_url);
    expect(second.ready.tunnel_id).toBe(first.ready.tunnel_id);
    expect((await askHttp(first.endpoint)).status).toBe(200);
  });

  it('on request frees its name at once: visitors get a 404, and any client can take the name', async ({ harness }) => {
    const { tunnel, endpoint } = await openHttp(harness, stack, mirror.port, ['--subdomain', 'released']);
    expect((await askHttp(endpoint)).status).toBe(200);
    tunnel.signal('SIGINT');
    expect(await tunnel.exitCode()).toBe(0);
    expect((await askHttp(endpoint)).status).toBe(404);
    await openHttp(harness, stack, mirror.port, ['--subdomain', 'released']);
    expect((await askHttp(endpoint)).status).toBe(200);
  });
});

describe.concurrent('--host-header', () => {
  it.for([
    [[], (host: string) => host],
    [['--host-header', 'keep'], (host: string) => host],
    [['--host-header', 'rewrite'], (_: string, local: string) => local],
    [['--host-header', 'app.test:81'], () => 'app.test:81'],
  ] as const)('%j decides the Host header that the service gets', async ([flags, expected], { harness }) => {
    const { endpoint } = await openHttp(harness, stack, mirror.port, [...flags]);
    const { headers } = mirrored((await askHttp(endpoint)).text);
    expect(headers['host']).toBe(expected(endpoint.host, `127.0.0.1:${mirror.port}`));
    expect(headers['x-forwarded-host']).toBe(endpoint.host);
  });
});

describe.concurrent('a local service that speaks TLS', () => {
  const startSecure = async (harness: Harness): Promise<number> => {
    const server: SecureServer = createSecureServer(testCertificate(), (_, response) => response.end('over TLS'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    harness.use({
      close: async () => {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      },
    });
    return (server.address() as AddressInfo).port;
  };

  it('is not reached without a trusted certificate: visitors get a 502 and the client reports the reason', async ({
    harness,
  }) => {
    const port = await startSecure(harness);
    const { tunnel, endpoint } = await openHttp(harness, stack, port, ['--https']);
    const answer = await askHttp(endpoint, { headers: { accept: 'application/json' } });
    expect([answer.status, answer.headers['x-tunnel-error']]).toEqual([502, 'LOCAL_UNREACHABLE']);
    expect(await tunnel.waitFor('error')).toMatchObject({ code: 'CLIENT_LOCAL_CERTIFICATE' });
  });

  it('is reached with --local-tls-no-verify', async ({ harness }) => {
    const port = await startSecure(harness);
    const { ready, endpoint } = await openHttp(harness, stack, port, ['--https', '--local-tls-no-verify']);
    expect((await askHttp(endpoint)).text).toBe('over TLS');
    // For visitors, the REST API and billing, a tunnel with --https is an HTTP tunnel.
    expect(await stack.tunnel(ready.tunnel_id)).toMatchObject({ protocol: 'http' });
  });

  it('is reached if NODE_EXTRA_CA_CERTS contains its certificate authority', async ({ harness }) => {
    const port = await startSecure(harness);
    const args = [
      'http',
      String(port),
      '--https',
      '--json',
      '--server',
      stack.control,
      '--token-file',
      stack.tokenFile,
    ];
    const tunnel = await harness.run(args, { env: { NODE_EXTRA_CA_CERTS: TLS_CERT }, programs: true });
    expect((await askHttp(endpointOf((await tunnel.ready()).public_url))).text).toBe('over TLS');
  });
});

describe.concurrent('config.yml', () => {
  it('opens HTTP and TCP tunnels side by side, each with its own public address', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const home = await harness.folder();
    mkdirSync(join(home, '.tunnel'));
    const lines = [
      `server: ${stack.control}`,
      `auth_token_file: ${stack.tokenFile}`,
      'tunnels:',
      `  web: { proto: http, local_port: ${mirror.port}, subdomain: from-file, host_header: rewrite }`,
      `  plain: { proto: http, local_port: ${mirror.port} }`,
      `  db: { proto: tcp, local_port: ${echo.port} }`,
    ];
    writeFileSync(join(home, '.tunnel', 'config.yml'), `${lines.join('\n')}\n`);
    const program = await harness.run(['start', '--json'], { home });
    const ready: ReadyEvent[] = [await program.ready(1), await program.ready(2), await program.ready(3)];
    const of = (name: string): ReadyEvent => ready.find((one) => one.name === name) as ReadyEvent;
    const web = endpointOf(of('web').public_url);
    expect(web.host).toBe(`from-file.localhost:${web.port}`);
    expect(mirrored((await askHttp(web)).text).headers['host']).toBe(`127.0.0.1:${mirror.port}`);
    const plain = endpointOf(of('plain').public_url);
    expect(mirrored((await askHttp(plain)).text).headers['host']).toBe(plain.host);
    expect((await sendAndReadAll(of('db').assigned_port, Buffer.from('hi'))).toString()).toBe('hi');
    const requests = [await program.waitFor('request'), await program.waitFor('request', { nth: 2 })];
    expect(requests.map(({ name }) => name)).toEqual(['web', 'plain']);
  });
});
