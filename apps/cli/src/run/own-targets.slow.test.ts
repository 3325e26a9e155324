// Targets that no command may publish: inspectors and control sockets of the user's clients, the API and metrics of an edge on this
// machine, and control sockets of other software.
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import type { Edge } from '@tunnel/edge';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { makeTestIo } from '../io/io.fixture.ts';
import { startEdge } from './edge.fixture.ts';
import { eventOf, Runs } from './runs.fixture.ts';

let home: TemporaryDirectory;
let edge: Edge;
let flags: string[];
let other: Server;
const runs = new Runs();
/** The inspector port of a client in another process, as that client's control socket reports it. */
const OTHER_INSPECTOR = 4398;

beforeEach(async () => {
  home = await temporaryDirectory();
  edge = await startEdge();
  flags = ['--server', `127.0.0.1:${edge.addresses.control.port}`, '--token', 'admin', '--json'];
  const folder = join(home.path, '.tunnel', 'run');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  other = createServer((_request, response) => {
    response.end(JSON.stringify({ inspect_url: `http://127.0.0.1:${OTHER_INSPECTOR}/` }));
  });
  await new Promise<void>((resolve) => void other.listen(join(folder, '1.sock'), resolve));
});
afterEach(async () => {
  await runs.end();
  other.close();
  await edge.stop({ drainMs: 0 });
  await home.close();
});

const refused = async (...args: string[]): Promise<void> => {
  const io = makeTestIo({ home: home.path });
  const code = await run([...args, ...flags], io);
  expect([args.join(' '), code, io.err() + io.out()]).toEqual([
    args.join(' '),
    2,
    expect.stringContaining('cannot be published'),
  ]);
};

it('the inspector of another client and the management ports of the edge cannot be published by any command or spelling', async () => {
  const { api, metrics } = edge.addresses;
  for (const host of ['127.0.0.1', 'localhost', '127.1', '0x7f.1', '[::1]', '[::ffff:127.0.0.1]', '0.0.0.0']) {
    await refused('tcp', `${host}:${OTHER_INSPECTOR}`);
  }
  await refused('http', String(OTHER_INSPECTOR));
  await refused('http', `http://localhost:${OTHER_INSPECTOR}`);
  await refused('tls', String(OTHER_INSPECTOR), '--subdomain', 'shop');
  await refused('tcp', String(api.port));
  await refused('http', `localhost:${metrics.port}`);
});

it('control sockets and the socket of a running client cannot be published, even through a symbolic link', async () => {
  const agent = join(home.path, '.tunnel', 'run', '1.sock');
  await refused('http', `unix:${agent}`);
  symlinkSync(agent, join(home.path, 'app.sock'));
  await refused('tcp', `unix:${join(home.path, 'app.sock')}`);
  await refused('tcp', 'unix:/var/run/docker.sock');
});

it('a client cannot publish its own inspector, and the other tunnels stay open', async () => {
  const io = makeTestIo({ home: home.path });
  runs.start(['http', '1', ...flags], io);
  const inspector = Number(new URL(String((await eventOf(io, 'ready'))['inspect_url'])).port);
  const add = makeTestIo({ home: home.path });
  expect(await run(['add', 'tcp', String(inspector), '--client', String(process.pid)], add)).toBe(2);
  expect(add.err()).toContain('cannot be published');
  const next = makeTestIo({ home: home.path });
  expect(await run(['add', 'tcp', '1', '--name', 'next', '--client', String(process.pid)], next)).toBe(0);
});

it('a control socket is published only with --yes-publish-socket or `allow_control_socket`', async () => {
  const io = makeTestIo({ home: home.path });
  runs.start(['tcp', 'unix:/var/run/docker.sock', '--yes-publish-socket', ...flags], io);
  expect(await eventOf(io, 'ready')).toMatchObject({ event: 'ready' });
  const file = join(home.path, 'config.yml');
  const entry = 'proto: tcp, local_socket: /var/run/docker.sock';
  writeFileSync(file, `tunnels: { engine: { ${entry} } }`);
  await refused('start', '--config', file);
  writeFileSync(file, `tunnels: { engine: { ${entry}, allow_control_socket: true } }`);
  const started = makeTestIo({ home: home.path });
  runs.start(['start', '--config', file, ...flags], started);
  expect(await eventOf(started, 'ready')).toMatchObject({ event: 'ready' });
});
