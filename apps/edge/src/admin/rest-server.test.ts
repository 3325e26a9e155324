import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { apiError, edgeRegions, edgeStatus, edgeTunnel, edgeTunnels } from '@tunnel/contract';
import { createLogger, type Logger } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { openGate } from '../ingress/gate.fixture.ts';
import { ADMIN_TOKEN, ALICE_KEY, type RestFixture, startRest } from './rest.fixture.ts';
import { RestServer } from './rest-server.ts';

let rest: RestFixture;
afterEach(() => rest.stop());

const idsOf = async (response: Response): Promise<string[]> =>
  edgeTunnels.parse(await response.json()).map((tunnel) => tunnel.tunnel_id);

describe('the REST API, status 200', () => {
  it('the status and the OpenAPI document need no key, and the document lists every path', async () => {
    rest = await startRest();
    const status = await rest.request('/api/status');
    expect(edgeStatus.strict().parse(await status.json())).toMatchObject({ ok: true, region_id: 'local', tunnels: 3 });
    const document = (await (await rest.request('/api/openapi.json')).json()) as Record<string, never>;
    expect(document).toMatchObject({ openapi: '3.1.0', components: { schemas: { Tunnel: {}, Error: {} } } });
    expect(document).toMatchObject({ servers: [{ url: '/' }], info: { description: expect.any(String) } });
    const tags = (document['tags'] as { name: string }[] | undefined)?.map(({ name }) => name) ?? [];
    const operations = Object.values(document['paths'] ?? {}).flatMap(
      (methods) => Object.values(methods as object) as { operationId: string; tags: string[] }[],
    );
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
    for (const operation of operations) expect(tags).toEqual(expect.arrayContaining(operation.tags));
    expect(operations.every(({ tags: own }) => own.length === 1)).toBe(true);
    expect(Object.keys(document['paths'] ?? {})).toEqual([
      '/api/status',
      '/api/tunnels',
      '/api/tunnels/{id}',
      '/api/tunnels/{id}/flows',
      '/api/tunnels/{id}/peers',
      '/api/tunnels/{id}/peers/{peer_id}',
      '/api/tunnels/{id}/policy',
      '/api/regions',
      '/api/tunnels/{id}/requests',
      '/api/tunnels/{id}/requests/next',
      '/api/tunnels/{id}/requests/{request_id}',
      '/api/tunnels/{id}/requests/{request_id}/replay',
      '/api/groups',
      '/api/tunnels/{id}/health-events',
      '/api/groups/{protocol}/{label}/events',
      '/api/connections',
      '/api/certificates',
      '/api/certificates/renew',
    ]);
  });

  it('the admin token sees every tunnel, an API key only the tunnels of its account', async () => {
    rest = await startRest();
    expect(await idsOf(await rest.request('/api/tunnels', { token: ADMIN_TOKEN }))).toEqual([
      'tun_op',
      'tun_alice',
      'tun_bob',
    ]);
    expect(await idsOf(await rest.request('/api/tunnels', { token: ALICE_KEY }))).toEqual(['tun_alice']);
  });

  it('a tunnel has exactly the fields of the contract', async () => {
    rest = await startRest();
    const response = await rest.request('/api/tunnels/tun_alice', { token: ALICE_KEY });
    expect(edgeTunnel.strict().parse(await response.json())).toEqual({
      tunnel_id: 'tun_alice',
      session_id: 'ses_1',
      name: 'db',
      protocol: 'tcp',
      label: '20001',
      public_url: 'tcp://localhost:20001',
      assigned_port: 20_001,
      group: null,
      healthy: true,
      client_addr: '127.0.0.1:5000',
      region_id: 'local',
      request_count: 3,
      bytes_proxied: 4096,
      connected_since: '2030-01-01T00:00:00.000Z',
      policy: null,
    });
  });

  it('the list of regions marks the responding region as current', async () => {
    rest = await startRest();
    const regions = edgeRegions.parse(await (await rest.request('/api/regions', { token: ALICE_KEY })).json());
    expect(regions).toEqual([{ id: 'local', name: 'Local', location: '', current: true }]);
  });

  it('a caller’s plain request id is kept; an invalid or long request id is replaced', async () => {
    rest = await startRest();
    const idFor = async (given: string) =>
      (await rest.request('/api/status', { headers: { 'x-request-id': given } })).headers.get('x-request-id');
    expect(await idFor('mine-1')).toBe('mine-1');
    expect(await idFor('not mine')).toBe('req_new');
    expect(await idFor('x'.repeat(65))).toBe('req_new');
  });
});

describe('DELETE /api/tunnels/:id, status 204', () => {
  it('an API key closes a tunnel of its account, and the client is told the reason', async () => {
    rest = await startRest();
    const response = await rest.request('/api/tunnels/tun_alice', { method: 'DELETE', token: ALICE_KEY });
    expect(response.status).toBe(204);
    expect(response.headers.get('x-request-id')).toBe('req_new');
    expect(rest.closed).toMatchObject([{ tunnelId: 'tun_alice', fault: { code: 'TUNNEL_CLOSED_BY_ACCOUNT' } }]);
  });

  it('the admin token closes a tunnel of any account', async () => {
    rest = await startRest();
    expect((await rest.request('/api/tunnels/tun_bob', { method: 'DELETE', token: ADMIN_TOKEN })).status).toBe(204);
    expect(rest.closed).toMatchObject([{ tunnelId: 'tun_bob', fault: { code: 'TUNNEL_CLOSED_BY_OPERATOR' } }]);
  });
});

const expectError = async (response: Response, status: number, code: string) => {
  expect(response.status).toBe(status);
  const body = apiError.strict().parse(await response.json());
  expect(body.code).toBe(code);
  expect(body.request_id).toBe(response.headers.get('x-request-id'));
  return body;
};

describe('the REST API, status 400', () => {
  it('bytes that are not HTTP get a 400 with a request id', async () => {
    rest = await startRest();
    const socket = connect(rest.port, '127.0.0.1');
    socket.end('this is not http\r\n\r\n');
    const answer = await text(socket);
    expect(answer).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/);
    expect(answer).toContain('x-request-id: req_new');
    expect(answer).toContain('API_BAD_REQUEST');
  });
});

describe('the REST API, status 401', () => {
  it.each(['/api/tunnels', '/api/tunnels/tun_op', '/api/regions', '/api/tunnels/tun_op/requests'])(
    '%s needs a key',
    async (path) => {
      rest = await startRest();
      const missing = await rest.request(path);
      expect(missing.headers.get('www-authenticate')).toBe('Bearer');
      await expectError(missing, 401, 'AUTH_TOKEN_MISSING');
      await expectError(
        await rest.request(path, { headers: { authorization: 'Basic YTpi' } }),
        401,
        'AUTH_TOKEN_MISSING',
      );
      await expectError(await rest.request(path, { token: 'tnl_wrong' }), 401, 'AUTH_TOKEN_INVALID');
    },
  );
});

describe('the REST API, status 404', () => {
  it('another account’s tunnel gets the same 404 as an unknown tunnel, and DELETE leaves it open', async () => {
    rest = await startRest();
    const foreign = await expectError(
      await rest.request('/api/tunnels/tun_bob', { token: ALICE_KEY }),
      404,
      'TUNNEL_UNKNOWN',
    );
    const none = await expectError(
      await rest.request('/api/tunnels/tun_none', { token: ALICE_KEY }),
      404,
      'TUNNEL_UNKNOWN',
    );
    expect(foreign).toEqual(none);
    for (const id of ['tun_bob', 'tun_op', 'tun_none']) {
      const response = await rest.request(`/api/tunnels/${id}`, { method: 'DELETE', token: ALICE_KEY });
      await expectError(response, 404, 'TUNNEL_UNKNOWN');
    }
    expect(rest.closed).toEqual([]);
  });

  it.each(['/', '/api', '/api/nothing', '/api/tunnels/tun_op/more'])('%s does not exist', async (path) => {
    rest = await startRest();
    await expectError(await rest.request(path), 404, 'API_NOT_FOUND');
  });
});

describe('the REST API, status 405', () => {
  it.each([
    ['POST', '/api/status', 'GET, HEAD'],
    ['DELETE', '/api/openapi.json', 'GET, HEAD'],
    ['POST', '/api/tunnels', 'GET, HEAD'],
    ['PUT', '/api/tunnels/tun_op', 'GET, HEAD, DELETE'],
    ['DELETE', '/api/regions', 'GET, HEAD'],
    ['POST', '/api/tunnels/tun_op/requests', 'GET, HEAD'],
    ['GET', '/api/tunnels/tun_op/requests/req_1/replay', 'POST'],
  ])('%s %s gets a list of the allowed methods', async (method, path, allow) => {
    rest = await startRest();
    const response = await rest.request(path, { method, token: ADMIN_TOKEN });
    expect(response.headers.get('allow')).toBe(allow);
    await expectError(response, 405, 'API_METHOD_NOT_ALLOWED');
  });
});

describe('the REST API, status 413', () => {
  it('a body over 64 KiB is rejected when content-length announces the size', async () => {
    rest = await startRest();
    const body = Buffer.alloc(64 * 1024 + 1);
    await expectError(await rest.request('/api/status', { method: 'POST', body }), 413, 'API_BODY_TOO_LARGE');
  });

  it('a body over 64 KiB without content-length is rejected', async () => {
    rest = await startRest();
    const chunk = Buffer.alloc(40 * 1024);
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(chunk);
        controller.enqueue(chunk);
        controller.close();
      },
    });
    await expectError(
      await rest.request('/api/tunnels', { method: 'POST', body, token: ADMIN_TOKEN }),
      413,
      'API_BODY_TOO_LARGE',
    );
  });

  it('a smaller body is accepted and ignored', async () => {
    rest = await startRest();
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.alloc(1024));
        controller.close();
      },
    });
    expect((await rest.request('/api/tunnels/tun_bob', { method: 'DELETE', body, token: ADMIN_TOKEN })).status).toBe(
      204,
    );
  });
});

describe('the REST API, status 429', () => {
  it('an address with too many wrong keys is rejected for the rest of the minute, even with a valid key', async () => {
    rest = await startRest({ perMinute: 3 });
    for (let n = 0; n < 3; n++)
      await expectError(await rest.request('/api/tunnels', { token: 'wrong' }), 401, 'AUTH_TOKEN_INVALID');
    rest.clock.now += 10_000;
    const response = await rest.request('/api/tunnels', { token: ADMIN_TOKEN });
    expect(response.headers.get('retry-after')).toBe('50');
    await expectError(response, 429, 'AUTH_TOO_MANY_FAILURES');
    expect((await rest.request('/api/status')).status).toBe(200);
    rest.clock.now += 50_000;
    expect((await rest.request('/api/tunnels', { token: ADMIN_TOKEN })).status).toBe(200);
  });

  it('requests without a key do not count as wrong keys', async () => {
    rest = await startRest({ perMinute: 1 });
    for (let n = 0; n < 3; n++) await rest.request('/api/tunnels');
    expect((await rest.request('/api/tunnels', { token: ADMIN_TOKEN })).status).toBe(200);
  });
});

describe('the REST API, status 500', () => {
  it('an internal error does not reveal its message', async () => {
    rest = await startRest({ failing: true });
    const body = await expectError(await rest.request('/api/status'), 500, 'INTERNAL');
    expect(JSON.stringify(body)).not.toContain('hunter2');
  });
});

it('an upload that breaks off logs no error', async () => {
  const error = vi.fn();
  const onRequest = vi.fn();
  const silent = createLogger({ level: 'silent', format: 'json' });
  rest = await startRest({ logger: { ...silent, error } as unknown as Logger, onRequest });
  for (const leave of ['resetAndDestroy', 'end'] as const) {
    onRequest.mockClear();
    const socket = connect(rest.port, '127.0.0.1')
      .on('error', () => {})
      .resume();
    socket.write('POST /api/status HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n');
    await eventually(() => expect(onRequest).toHaveBeenCalled());
    const closed = once(socket, 'close');
    socket[leave]();
    await closed;
  }
  // By the time of this response the server has handled both broken uploads.
  expect((await rest.request('/api/status')).status).toBe(200);
  expect(error).not.toHaveBeenCalled();
});

it('an API port in use is reported with the config key that sets the port', async () => {
  rest = await startRest();
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const { port } = holder.address() as { port: number };
  const second = new RestServer({ host: '127.0.0.1', port }, { gate: openGate() }, { newRequestId: () => '' } as never);
  await expect(second.start()).rejects.toMatchObject({
    code: 'CONFIG_PORT_TAKEN',
    message: `port ${port} on 127.0.0.1 is already in use ([server] api_port)`,
  });
  await second.stop();
  holder.close();
});
