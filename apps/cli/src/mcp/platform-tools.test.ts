// The platform's MCP tools against a scripted platform: results, refusals, and the use of the API key.
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CapturedRequest } from '@tunnel/contract';
import { Secret } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { PlatformTools } from './platform-tools.ts';

interface Asked {
  readonly authorization: string | undefined;
  readonly params: unknown;
}

let server: Server;
let asked: Asked[];
let answer: (response: ServerResponse) => void;

beforeEach(async () => {
  asked = [];
  server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
    });
    request.on('end', () => {
      const { params } = JSON.parse(text) as { params: unknown };
      asked.push({ authorization: request.headers.authorization, params });
      answer(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const HOLDER = { token: new Secret('tnl_key'), caFile: undefined, insecure: false, proxyFor: () => null };
const tools = (host = '127.0.0.1'): PlatformTools =>
  new PlatformTools(`http://${host}:${(server.address() as AddressInfo).port}`, HOLDER);

const says = (status: number, body: unknown): typeof answer => {
  return (response) => void response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
};
const told = (structuredContent: object): typeof answer =>
  says(200, { jsonrpc: '2.0', id: 1, result: { structuredContent } });
const failed = (text: string): typeof answer =>
  says(200, { result: { isError: true, content: [{ type: 'text', text }] } });

const REQUEST: CapturedRequest = {
  id: 'req_a',
  tunnel_id: 'tun_a',
  at: '2030-01-31T12:00:00.000Z',
  method: 'POST',
  path: '/hook',
  status: 200,
  duration_ms: 1,
  request_headers: {},
  response_headers: {},
  request_size: 0,
  response_size: 0,
  request_body: null,
  response_body: null,
  aborted: false,
  error: null,
  replayable: true,
};
const never = new AbortController().signal;

it('waiting through the platform sends the API key and the filter, and returns a request or null', async () => {
  answer = told({ request: REQUEST, waited_ms: 5, untrusted: true });
  expect(await tools().next('tun_a', { method: 'POST', path_contains: '/hook' }, 60_000, never)).toEqual(REQUEST);
  const args = { tunnel: 'tun_a', method: 'POST', path_contains: '/hook', timeout_secs: 60 };
  expect(asked).toEqual([{ authorization: 'Bearer tnl_key', params: { name: 'wait_for_request', arguments: args } }]);
  answer = told({ request: null, waited_ms: 60_000, untrusted: true });
  expect(await tools().next('tun_a', {}, 60_000, never)).toBeNull();
});

it('requests listed by the platform keep their times', async () => {
  const { id, method, path, status, duration_ms, at } = REQUEST;
  const line = { id, method, path, status, duration_ms };
  answer = told({ requests: [{ ...line, time: at }], truncated: true, untrusted: true });
  expect(await tools().requests('tun_a', never)).toEqual({ requests: [{ ...line, at }], truncated: true });
});

it('a failed tool of the platform becomes an error with its code and message, without the hint', async () => {
  answer = failed('TUNNEL_UNKNOWN: no such tunnel Next: Call list_tunnels to see the existing tunnels.');
  await expect(tools().get('tun_b', never)).rejects.toMatchObject({
    code: 'TUNNEL_UNKNOWN',
    message: 'no such tunnel',
  });
});

it("an API key rejected by the platform is reported with the platform's message", async () => {
  answer = says(401, { error: 'the API key is not accepted', code: 'AUTH_TOKEN_INVALID', request_id: 'req_1' });
  await expect(tools().list(10, never)).rejects.toMatchObject({ message: 'the API key is not accepted' });
});

it.each([
  ['a page', says(200, '<html>')],
  ['nothing', says(200, '')],
  ['another status', says(502, 'bad gateway')],
  ['no result', says(200, { jsonrpc: '2.0', id: 1 })],
  ['another shape', told({ tunnels: [{ tunnel_id: 7 }] })],
  ['no data', says(200, { result: { content: [] } })],
])('%s as a response counts as an unreachable platform', async (_, wrong) => {
  answer = wrong;
  await expect(tools().list(10, never)).rejects.toMatchObject({ code: 'CLIENT_PLATFORM_UNREACHABLE' });
});

it("a canceled call ends at once with the caller's reason", async () => {
  answer = () => {};
  const stop = new AbortController();
  const waiting = tools().next('tun_a', {}, 60_000, stop.signal);
  await eventually(() => expect(asked).toHaveLength(1));
  const reason = new Error('cancelled');
  stop.abort(reason);
  await expect(waiting).rejects.toBe(reason);
});
