// An account that is closed to traffic, from the edge's message to the exit code: the client ends and does not reconnect.
import { writeFileSync } from 'node:fs';
import { createServer, get, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Edge, EdgeDeps } from '@tunnel/edge';
import { Fault } from '@tunnel/errors';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { makeTestIo, type TestIo } from '../io/io.fixture.ts';
import { startEdge } from './edge.fixture.ts';

type Backend = NonNullable<EdgeDeps['backend']>;
type Asked = Parameters<Backend['admitTunnel']>[0];
type Listener = Parameters<Backend['onRevoked']>[0];

/** A backend with a single account, any API key, and a way to close the account. */
class OneAccount implements Backend {
  readonly reserved = {
    isReserved: () => false,
    isOthersPort: () => false,
    isReservedPort: () => false,
    reservedPorts: () => [],
    countOf: () => 0,
    accountOfDomain: () => null,
  };
  logins = 0;
  readonly asked: string[] = [];
  /** Returns the refusal for the tunnel with this name, or null. */
  refuse: (name: string) => Fault | null = () => null;
  readonly #listeners = new Set<Listener>();
  readonly #ids = new Map<string, string>();

  async verifyKey(): ReturnType<Backend['verifyKey']> {
    this.logins += 1;
    return { ok: true, owner: { kind: 'account', accountId: 'ann' }, keyId: 'key_1' };
  }

  async admitTunnel({ name, tunnelId }: Asked): Promise<Fault | null> {
    this.asked.push(name);
    this.#ids.set(name, tunnelId);
    return this.refuse(name);
  }

  close(fault: Fault): void {
    for (const listener of this.#listeners) listener({ accountId: 'ann', fault });
  }

  closeTunnels(names: readonly string[], fault: Fault): void {
    const tunnelIds = names.map((name) => this.#ids.get(name) ?? '');
    for (const listener of this.#listeners) listener({ tunnelIds, fault });
  }

  onRevoked(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onDomainsChanged(): () => void {
    return () => {};
  }

  admissionEnded(): void {}
  tunnelOpened(): void {}
  tunnelClosed(): void {}
  streamEnded(): void {}
  ready(): void {}
  async start(): Promise<void> {}
  async stop(): Promise<void> {}
}

let home: TemporaryDirectory;
let edge: Edge;
let backend: OneAccount;
let service: Server;
let localPort: number;
let flags: string[];
const runs: { io: TestIo; code: Promise<number> }[] = [];
beforeEach(async () => {
  home = await temporaryDirectory();
  service = createServer((_, response) => response.end('here'));
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  localPort = (service.address() as AddressInfo).port;
  backend = new OneAccount();
  edge = await startEdge({}, { backend });
  flags = ['--server', `127.0.0.1:${edge.addresses.control.port}`, '--token', 't', '--drain-secs', '0'];
});
afterEach(async () => {
  for (const { io, code } of runs.splice(0)) {
    io.signal('SIGTERM');
    await code;
  }
  await edge.stop({ drainMs: 0 });
  service.closeAllConnections();
  await new Promise((resolve) => service.close(resolve));
  await home.close();
});

const start = (args: readonly string[]): { io: TestIo; code: Promise<number> } => {
  const io = makeTestIo({ home: home.path, env: { NO_COLOR: '1' } });
  const started = { io, code: run([...args, ...flags], io) };
  runs.push(started);
  return started;
};

const visit = (name: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const { port } = edge.addresses.http;
    const headers = { host: `${name}.localhost` };
    get({ host: '127.0.0.1', port, headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    }).on('error', reject);
  });

const CAP = () => new Fault('SPEND_CAP_REACHED', { cap: '$5.00' });
const PAST_DUE = () => new Fault('ACCOUNT_PAST_DUE', { days: 7 });

describe.each([
  ['over its spend cap', CAP, 'spend cap of $5.00 reached'],
  ['past due', PAST_DUE, 'the account is past due: a payment failed more than 7 days ago'],
])('an account that is %s', (_, fault, text) => {
  it('ends the client with 6 when its tunnel is refused, without a retry', async () => {
    backend.refuse = fault;
    const { io, code } = start(['http', String(localPort), '--name', 'web']);
    expect(await code).toBe(6);
    expect(io.err()).toContain(`tunnel: web: ${text}\n`);
    expect([backend.logins, backend.asked]).toEqual([1, ['web']]);
  });

  it('ends the client with 6 when its session is closed, visitors get a 404, and the client does not reconnect', async () => {
    const { io, code } = start(['http', String(localPort), '--subdomain', 'shop']);
    await eventually(async () => expect(await visit('shop')).toBe(200));
    backend.close(fault());
    expect(await visit('shop')).toBe(404);
    expect(await code).toBe(6);
    expect(io.err()).toContain(text);
    expect([backend.logins, backend.asked.length]).toEqual([1, 1]);
  });

  it('ends the client with 6 even if another tunnel is refused for a different reason', async () => {
    backend.refuse = (name) => (name === 'db' ? new Fault('TUNNEL_PLAN_LIMIT', { limit: 1 }) : fault());
    const tunnels = `web: {proto: http, local_port: ${localPort}}\n  db: {proto: tcp, local_port: ${localPort}}`;
    writeFileSync(join(home.path, 'config.yml'), `tunnels:\n  ${tunnels}\n`);
    const { code } = start(['start', '--config', join(home.path, 'config.yml')]);
    expect(await code).toBe(6);
  });
});

it("a tunnel above the plan's limit is closed with the reason, and the other tunnels stay open", async () => {
  const tunnels = `old: {proto: http, local_port: ${localPort}, subdomain: old}\n  new: {proto: http, local_port: ${localPort}, subdomain: new}`;
  writeFileSync(join(home.path, 'config.yml'), `tunnels:\n  ${tunnels}\n`);
  const { io, code } = start(['start', '--config', join(home.path, 'config.yml')]);
  for (const name of ['old', 'new']) await eventually(async () => expect(await visit(name)).toBe(200));
  backend.closeTunnels(['new'], new Fault('TUNNEL_OVER_PLAN', { plan: 'free', limit: 1 }));
  await eventually(() =>
    expect(io.out() + io.err()).toContain('the plan `free` allows 1 tunnels, and this tunnel exceeds the limit'),
  );
  expect([await visit('old'), await visit('new')]).toEqual([200, 404]);
  expect(backend.asked.toSorted()).toEqual(['new', 'old']);
  io.signal('SIGINT');
  expect(await code).toBe(0);
});
