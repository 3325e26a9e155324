// The inspector as used by its page: over HTTP, with requests through a client.
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { Script } from 'node:vm';
import { createLogger, systemClock } from '@tunnel/runtime';
import { eventually, rethrow } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, connect } from '../client.ts';
import { RequestReporter } from '../requests/request-reporter.ts';
import { ScriptedEdge } from '../scripted-edge.fixture.ts';
import type { Tunnel } from '../tunnels/tunnel.ts';
import { type Inspector, type RequestAtEdge, startInspector } from './inspector.ts';
import { PAGE_SCRIPT } from './page-script.ts';

let edge: ScriptedEdge;
let client: Client;
let inspector: Inspector;
let service: Server;
let tunnel: Tunnel;
/** Requests to the edge for a replay. */
let atEdge: RequestAtEdge[];
/** Requests received by the local service. */
let served: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[];

beforeEach(async () => {
  edge = await new ScriptedEdge().listen();
  served = [];
  atEdge = [];
  service = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  client = await connect({ server: edge.address, token: 't' });
  const opened = await client.openInspector({
    replayAtEdge: async (request) => {
      atEdge.push(request);
      return 'req_again';
    },
  });
  if (opened === null) throw new Error('no port is free');
  inspector = opened;
  const { port } = service.address() as AddressInfo;
  tunnel = await client.open({ protocol: 'http', name: 'web', localPort: port });
});
afterEach(async () => {
  await client.close();
  await edge.close();
  service.closeAllConnections();
  await new Promise((resolve) => service.close(resolve));
});

const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  let body = '';
  for await (const piece of request) body += String(piece);
  const { method = '', url = '', headers } = request;
  served.push({ method, url, headers, body });
  response.writeHead(201, { 'content-type': 'application/json', 'set-cookie': 'session=SECRET' });
  response.end(JSON.stringify({ got: body.length }));
};

/** Sends a visitor's request through the tunnel, as the edge forwards requests. */
const visit = (text: string): void => {
  edge.session.mux.open(
    { tunnelId: tunnel.tunnelId, visitor: '' },
    {
      onOpened: (stream) => {
        stream.read({ onData: () => true, onDrain: () => {}, onEnd: () => {}, onReset: () => {}, abandon: rethrow });
        stream.write(Buffer.from(text), 0, Buffer.byteLength(text), false);
      },
      onRefused: () => {},
      abandon: rethrow,
    },
  );
};

const POST =
  'POST /in?page=1&code=SECRET HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer SECRET\r\nCookie: a=SECRET\r\nX-Api-Key: SECRET\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n4\r\na=1&\r\nf\r\npassword=SECRET\r\n0\r\n\r\n';

interface Reply {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  readonly json: () => Record<string, unknown>;
}

const ask = (
  path: string,
  { body, ...options }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const sent = httpRequest(new URL(path, inspector.url), { agent: false, ...options }, (response) => {
      let text = '';
      response.on('data', (piece) => (text += String(piece)));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          json: () => JSON.parse(text) as Record<string, unknown>,
        }),
      );
    });
    sent.on('error', reject).end(body);
  });

const list = async (): Promise<Record<string, unknown>[]> =>
  (await ask('/api/requests')).json()['requests'] as Record<string, unknown>[];

const replay = async (id: string, headers: Record<string, string> = {}, body = ''): Promise<Reply> => {
  const page = await ask('/');
  const token = /name="inspector-token" content="([^"]+)"/.exec(page.text)?.[1] ?? '';
  const origin = inspector.url.slice(0, -1);
  return ask(`/api/requests/${id}/replay`, {
    method: 'POST',
    headers: { origin, 'x-inspector-token': token, ...headers },
    body,
  });
};

const whenListed = (count: number): Promise<Record<string, unknown>[]> =>
  eventually(async () => {
    const requests = await list();
    expect(requests.filter(({ state }) => state === 'complete')).toHaveLength(count);
    return requests;
  });

/** Waits until `count` requests are listed, and returns the id of the newest. */
const newestId = async (count: number): Promise<string> => String((await whenListed(count))[0]?.['id']);

describe('the inspector page', () => {
  it('has a strict content security policy, no external URLs and a valid script', async () => {
    const page = await ask('/');
    expect(page.status).toBe(200);
    expect(page.headers['content-security-policy']).toContain("default-src 'none'");
    expect(page.headers['x-content-type-options']).toBe('nosniff');
    for (const path of ['/', '/page.css', '/page.js']) {
      expect((await ask(path)).text.replaceAll('https?:', '')).not.toMatch(/https?:\/\/|\/\/\w+\./);
    }
    expect(() => new Script(PAGE_SCRIPT)).not.toThrow();
  });

  it('listens on 127.0.0.1 at the first free port from 4300 to 4399', () => {
    const { hostname, port } = new URL(inspector.url);
    expect(hostname).toBe('127.0.0.1');
    expect(Number(port)).toBeGreaterThanOrEqual(4300);
    expect(Number(port)).toBeLessThanOrEqual(4399);
  });

  it('stops when the client closes', async () => {
    await client.close();
    await eventually(() => expect(ask('/')).rejects.toThrow());
  });
});

describe('requests that the edge answered without the local service', () => {
  const answer = (more: object): void =>
    edge.session.send({
      type: 'EdgeAnswered',
      tunnel_id: tunnel.tunnelId,
      request_id: 'req_run1',
      at: '2030-01-01T00:00:00.000Z',
      method: 'POST',
      path: '/hook',
      status: 502,
      code: 'LOCAL_UNREACHABLE',
      rule: null,
      duration_ms: 2,
      ...more,
    } as never);

  it('are listed with the reason, and can be replayed from the copy at the edge', async () => {
    answer({});
    const [summary] = await whenListed(1);
    expect(summary).toMatchObject({
      id: 'req_run1',
      tunnel: 'web',
      method: 'POST',
      path: '/hook',
      status: 502,
      state: 'complete',
      duration_ms: 2,
      answered_by: { code: 'LOCAL_UNREACHABLE', rule: null, reason: 'service not running' },
    });
    const detail = (await ask('/api/requests/req_run1')).json();
    expect(detail).toMatchObject({ replay_problem: null, is_at_edge: true, response: null });
    const again = await replay('req_run1');
    expect([again.status, again.json()]).toEqual([202, { id: 'req_again' }]);
    expect(atEdge).toEqual([{ tunnelId: tunnel.tunnelId, requestId: 'req_run1' }]);
    expect((await replay('req_run1', {}, '{"path":"/other"}')).status).toBe(409);
  });

  it('cannot be replayed when a policy rule answered', async () => {
    answer({ request_id: 'req_run2', status: 403, code: 'POLICY_DENIED', rule: 'office' });
    const [summary] = await whenListed(1);
    expect(summary).toMatchObject({ status: 403, answered_by: { rule: 'office', reason: 'rule office' } });
    expect((await replay('req_run2')).status).toBe(409);
    expect(atEdge).toEqual([]);
  });

  it('are shown as one entry when the client also saw the request', async () => {
    visit(POST);
    const id = await newestId(1);
    answer({ request_id: id, status: 504, code: 'LOCAL_TIMEOUT' });
    const requests = await eventually(async () => {
      const found = await list();
      expect(found[0]).toMatchObject({ id, status: 504, answered_by: { reason: 'service too slow' } });
      return found;
    });
    expect(requests).toHaveLength(1);
    expect((await ask(`/api/requests/${id}`)).json()).toMatchObject({ replay_problem: null, is_at_edge: false });
  });
});

describe('captured requests', () => {
  it('are listed and shown without their secrets', async () => {
    visit(POST);
    const [summary] = await whenListed(1);
    expect(summary).toMatchObject({
      id: expect.stringMatching(/^req_\w+$/),
      tunnel: 'web',
      method: 'POST',
      path: '/in?page=1&code=…',
      status: 201,
      request_bytes: 19,
      replay_of: null,
    });
    const detail = await ask(`/api/requests/${String(summary?.['id'])}`);
    expect(detail.text).not.toContain('SECRET');
    expect(detail.json()).toMatchObject({
      request: { body: { bytes: 19, text: 'a=1&password=[redacted]', is_whole: true } },
      replay_problem: null,
    });
    expect(detail.text).toContain('["Authorization","[redacted]"]');
    expect(detail.text).toContain('["set-cookie","[redacted]"]');
  });

  it('show the signed-in user, but the curl command does not', async () => {
    visit('GET /who HTTP/1.1\r\nHost: x\r\nX-Tunnel-User: ann@example.com\r\nX-Tunnel-Auth: login\r\n\r\n');
    const detail = await ask(`/api/requests/${await newestId(1)}`);
    expect(detail.json()).toMatchObject({ user: 'ann@example.com' });
    expect(String(detail.json()['curl'])).not.toMatch(/x-tunnel/i);
    visit('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    expect((await ask(`/api/requests/${await newestId(2)}`)).json()).toMatchObject({ user: null });
  });

  it('are not kept for a tunnel without capture', async () => {
    const localPort = tunnel.localPort ?? 0;
    await tunnel.close();
    tunnel = await client.open({ protocol: 'http', name: 'private', localPort, capture: false });
    visit(POST);
    await eventually(() => expect(served).toHaveLength(1));
    expect(await list()).toEqual([]);
  });

  it('are pushed to an open page as they arrive', async () => {
    let stream = '';
    const open = httpRequest(new URL('/api/events', inspector.url), { agent: false }, (response) => {
      response.on('data', (piece) => (stream += String(piece)));
      response.on('error', () => {});
    });
    open.on('error', () => {});
    open.end();
    await eventually(() => expect(stream).toContain('event: hello'));
    visit(POST);
    await eventually(() => expect(stream).toMatch(/event: requests\ndata: \[\{"id":"req_\w+".*"status":201/));
    expect(stream).not.toContain('SECRET');
  });

  it('get a 404 when their id is unknown', async () => {
    for (const path of ['/api/requests/req_9', '/api/requests/..%2f', '/nonsense']) {
      expect((await ask(path)).status).toBe(404);
    }
    expect((await replay('req_9')).status).toBe(404);
  });
});

describe('a replay', () => {
  it('sends the complete captured request to the local service and lists the response', async () => {
    visit(POST);
    const id = await newestId(1);
    const sent = await replay(id);
    const again = String(sent.json()['id']);
    expect([sent.status, again]).toEqual([202, expect.stringMatching(/^req_\w{20}$/)]);
    const requests = await whenListed(2);
    expect(requests[0]).toMatchObject({ id: again, replay_of: id, status: 201, request_bytes: 19 });
    expect(served[1]).toEqual(served[0]);
    expect(served[1]).toMatchObject({ url: '/in?page=1&code=SECRET', body: 'a=1&password=SECRET' });
    expect(served[1]?.headers).toMatchObject({ authorization: 'Bearer SECRET' });
    // A replay is a captured request and can be replayed as well.
    expect((await replay(again)).status).toBe(202);
    await eventually(() => expect(served).toHaveLength(3));
  });

  it('is sent as edited, restores redacted values and is marked as edited', async () => {
    visit(POST);
    const [first] = await whenListed(1);
    const id = String(first?.['id']);
    const detail = (await ask(`/api/requests/${id}`)).json();
    expect(detail).toMatchObject({ path: '/in?page=1&code=[redacted]', edited: false });
    const { request } = detail as { request: { headers: [string, string][]; body: { text: string } } };
    const edit = {
      method: 'PUT',
      path: '/in?page=2&code=[redacted]',
      headers: [...request.headers, ['X-New', '1']],
      body: request.body.text.replace('a=1', 'a=22'),
    };
    expect((await replay(id, {}, JSON.stringify(edit))).status).toBe(202);
    const [again] = await whenListed(2);
    expect(again).toMatchObject({ method: 'PUT', replay_of: id, edited: true });
    expect(served[1]).toMatchObject({ method: 'PUT', url: '/in?page=2&code=SECRET', body: 'a=22&password=SECRET' });
    expect(served[1]?.headers).toMatchObject({
      host: 'x',
      authorization: 'Bearer SECRET',
      cookie: 'a=SECRET',
      'x-api-key': 'SECRET',
      'x-new': '1',
    });
    for (const [body, status, reason] of [
      ['{', 400, /must have the form/],
      ['{"headers":[["a"]]}', 400, /must have the form/],
      ['{"url":"/"}', 400, /must have the form/],
      ['{"path":"x"}', 400, /path: must start with/],
      [JSON.stringify({ body: 'x'.repeat(17_000) }), 400, /body: larger than 16384 bytes/],
      [JSON.stringify({ body: 'x'.repeat(70_000) }), 413, /too long/],
    ] as const) {
      const refused = await replay(id, {}, body);
      expect([refused.status, refused.json()['error']]).toEqual([status, expect.stringMatching(reason)]);
    }
    expect(served).toHaveLength(2);
  });

  it('is refused unless requested by the inspector page', async () => {
    visit(POST);
    const id = await newestId(1);
    for (const headers of [
      { origin: 'http://evil.example' },
      { 'x-inspector-token': 'guess' },
      { host: 'evil.example' },
    ]) {
      expect((await replay(id, headers)).status).toBeGreaterThanOrEqual(403);
    }
    expect(served).toHaveLength(1);
  });

  it('is refused through a tunnel, as are the page and the list, even with the right host', async () => {
    visit(POST);
    const id = await newestId(1);
    for (const name of ['X-Forwarded-For', 'X-Forwarded-Proto', 'Forwarded', 'Via', 'X-Real-IP']) {
      for (const path of ['/', '/api/requests']) {
        expect((await ask(path, { headers: { [name]: '192.0.2.1' } })).status).toBe(403);
        expect((await ask(path, { headers: { [name]: '192.0.2.1', host: 'evil.example' } })).status).toBe(403);
      }
      expect((await replay(id, { [name]: '192.0.2.1' })).status).toBe(403);
    }
    expect(served).toHaveLength(1);
  });

  it('that is impossible fails with the reason', async () => {
    visit('GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    const refused = await replay(await newestId(1));
    expect([refused.status, refused.json()['error']]).toEqual([409, expect.stringContaining('another protocol')]);
    visit('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    const id = await newestId(2);
    service.closeAllConnections();
    await new Promise((resolve) => service.close(resolve));
    const failed = await replay(id);
    expect([failed.status, failed.json()['error']]).toEqual([502, expect.stringContaining('connection refused')]);
  });
});

describe('the inspector port', () => {
  it('skips ports in use, and without a free port the inspector does not start', async () => {
    const other = createTcpServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const taken = (other.address() as AddressInfo).port;
    const deps = {
      requests: new RequestReporter(systemClock),
      clock: systemClock,
      logger: createLogger({ level: 'silent', format: 'json' }),
      tunnels: () => [],
    };
    expect(await startInspector({ ...deps, ports: [taken, taken] })).toBeNull();
    const second = await startInspector({ ...deps, ports: [taken, 0] });
    expect(new URL(second?.url ?? '').port).not.toBe(String(taken));
    await second?.close();
    await second?.close();
    other.close();
  });
});
