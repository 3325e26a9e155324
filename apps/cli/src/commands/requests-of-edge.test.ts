// Tunnels and requests of an API key at a real edge, without a login. Terminal, inspector and edge use the same id for a request.
import { once } from 'node:events';
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Edge } from '@tunnel/edge';
import { sha256Hex } from '@tunnel/runtime';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { makeTestIo, type TestIo } from '../io/io.fixture.ts';
import { startEdge } from '../run/edge.fixture.ts';

let home: TemporaryDirectory;
let edge: Edge;
let service: Server;
let visits: string[];
let running: { io: TestIo; code: Promise<number> };

beforeEach(async () => {
  home = await temporaryDirectory();
  visits = [];
  service = createServer((request, response) => {
    visits.push(`${request.method} ${request.url}`);
    response.writeHead(202).end('ok');
  }).listen(0, '127.0.0.1');
  await once(service, 'listening');
  const keys = ['alice', 'bob'].map((account) => ({ account, sha256: sha256Hex(account) }));
  edge = await startEdge({ auth: { keys } });
  const io = makeTestIo({ home: home.path });
  const flags = ['--server', `127.0.0.1:${edge.addresses.control.port}`, '--token', 'alice', '--drain-secs', '0'];
  const port = `${(service.address() as AddressInfo).port}`;
  running = { io, code: run(['http', port, '--subdomain', 'shop', '--name', 'web', '--json', ...flags], io) };
});
afterEach(async () => {
  running.io.signal('SIGTERM');
  await running.code;
  await edge.stop({ drainMs: 0 });
  service.closeAllConnections();
  service.close();
  await home.close();
});

const event = (name: string): Promise<Record<string, unknown>> =>
  eventually(() => {
    const found = running.io.events().findLast((one) => one['event'] === name);
    expect(found).toBeDefined();
    return found as Record<string, unknown>;
  });

const visit = async (path: string, more: Record<string, string> = {}): Promise<void> => {
  const { host, port } = new URL(String((await event('ready'))['public_url']));
  const options = { host: '127.0.0.1', port, path, method: 'POST', headers: { host, ...more }, agent: false };
  const sent = httpRequest(options).end('{}');
  const [response] = (await once(sent, 'response')) as [NodeJS.ReadableStream];
  response.resume();
  await once(response, 'end');
};

const ask = async (args: string[], key = 'alice'): Promise<{ code: number; out: string; err: string }> => {
  const io = makeTestIo({ home: home.path, env: { TUNNEL_API_KEY: key } });
  const code = await run([...args, '--api', `http://127.0.0.1:${edge.addresses.api.port}`], io);
  return { code, out: io.out(), err: io.err() };
};

it('an API key lists, shows and replays only requests of its own tunnels', async () => {
  await visit('/hook?x=1');
  const { id } = await event('request');
  const [listed] = JSON.parse((await ask(['list', '--json'])).out) as Record<string, unknown>[];
  expect(listed).toMatchObject({ name: 'web', label: 'shop', protocol: 'http', request_count: 1 });
  expect(listed?.['public_url']).toBe((await event('ready'))['public_url']);
  const shown = await ask(['requests', 'web']);
  expect(shown.out).toMatch(new RegExp(` POST {2}/hook\\?x=1 {2}202 +[\\d.]+ ms {2}${String(id)}\\n$`));
  const replayed = await ask(['replay', String(id)]);
  expect([replayed.code, replayed.out]).toEqual([
    0,
    expect.stringMatching(/^Replayed: 202 in [\d.]+ ms\. New id: req_/),
  ]);
  expect(visits).toEqual(['POST /hook?x=1', 'POST /hook?x=1']);
  await eventually(() => expect(running.io.events()).toContainEqual(expect.objectContaining({ replay_of: id })));
  expect((await ask(['requests', 'shop', '--json'])).out.split('\n')).toHaveLength(3);

  expect((await ask(['list'], 'bob')).out).toContain('No open tunnels.');
  expect((await ask(['requests', 'web'], 'bob')).code).toBe(2);
  expect((await ask(['replay', String(id)], 'bob')).code).toBe(2);
  expect(visits).toHaveLength(2);
});

it("a visitor's replay header does not mark a request as a replay", async () => {
  for (const name of ['X-Tunnel-Replay', 'x_tunnel_replay']) await visit(`/${name}`, { [name]: 'req_1' });
  const events = await eventually(() => {
    const seen = running.io.events().filter((one) => one['event'] === 'request');
    expect(seen).toHaveLength(2);
    return seen;
  });
  expect(events.map((one) => one['replay_of'])).toEqual([null, null]);
});

it('without session and API key the command asks for a login', async () => {
  const io = makeTestIo({ home: home.path });
  expect(await run(['list'], io)).toBe(2);
  expect(io.err()).toContain('Run `tunnel login`, or set TUNNEL_API_KEY.');
});
