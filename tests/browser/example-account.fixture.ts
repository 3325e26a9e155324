// An account with content on every page: live and past tunnels, captured requests, reserved names and ports, healthy and unhealthy
// groups, keys, an app.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CreatedKey, TunnelLogEntry } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import type { Harness } from '../system/harness.fixture.ts';
import { askHttp, endpointOf, startWeb } from '../system/http-tunnels.fixture.ts';
import type { TunnelProgram } from '../system/tunnel-program.fixture.ts';
import { Account } from './account.fixture.ts';
import { ConnectingApp } from './connecting-app.fixture.ts';
import type { StackAddress } from './own-stack.fixture.ts';

export interface Example {
  readonly account: Account;
  readonly key: CreatedKey;
  /** Id of a live http tunnel with captured requests. */
  readonly tunnelId: string;
  /** An app that is connected and can request access again. */
  readonly app: ConnectingApp;
}

export interface ExampleNames {
  /** Subdomain of the tunnel with captured requests. */
  readonly web: string;
  readonly pool: string;
  readonly downPool: string;
}

export interface ExampleOptions {
  /** The account to use; by default a new account. */
  readonly account?: Account;
  /** Number of visits to the healthy group. */
  readonly visits?: number;
}

export const makeExample = async (
  harness: Harness,
  stack: StackAddress,
  names: ExampleNames,
  { account: known, visits = 12 }: ExampleOptions = {},
): Promise<Example> => {
  const account = known ?? (await Account.signUp(stack, 'ann'));
  const key = await account.newKey('laptop');
  await account.newKey('build server');
  const app = await ConnectingApp.start(harness, stack);
  await app.connect(account);
  const open = (port: number, computer: string, flags: readonly string[]): Promise<TunnelProgram> =>
    harness.run(['http', String(port), '--json', '--server', stack.control, '--client-name', computer, ...flags], {
      env: { TUNNEL_API_KEY: key.token },
    });
  const service = harness.use(
    await startWeb((request, response) => {
      const status = request.url === '/missing' ? 404 : 200;
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ path: request.url, items: [{ id: 1, name: 'first' }] }));
    }),
  );
  const web = await open(service.port, 'anns-laptop', ['--subdomain', names.web, '--name', 'website']);
  const good = await poolFlags(harness, names.pool, 'http:/');
  const bad = await poolFlags(harness, names.downPool, 'http:/missing');
  const members = await Promise.all([
    ...[1, 2, 3].map((number) => open(service.port, `shop-${number}`, good)),
    ...[1, 2].map((number) => open(service.port, `checkout-${number}`, bad)),
  ]);
  const ended = await open(service.port, 'anns-laptop', []);
  for (const program of [web, ended, ...members]) await program.ready();
  await account.post('/reservations', { kind: 'subdomain', label: names.web });
  await account.post('/reservations', { kind: 'tcp' });
  ended.signal('SIGTERM');
  await ended.exitCode();
  const endpoint = endpointOf((await web.ready()).public_url);
  for (const path of ['/', '/items?page=2', '/missing']) await askHttp(endpoint, { path });
  await askHttp(endpoint, {
    method: 'POST',
    path: '/items',
    body: '{"name":"second"}',
    headers: { 'content-type': 'application/json' },
  });
  const pool = endpointOf((await members[0]?.ready())?.public_url ?? '');
  for (let done = 0; done < visits; done += 1) await askHttp(pool, { path: '/items' });
  const { tunnel_id: tunnelId } = await web.ready();
  await eventually(
    async () => {
      const { request_count: count } = await account.get<TunnelLogEntry>(`/usage/tunnels/${tunnelId}`);
      if (count < 4) throw new Error(`${count} requests are counted`);
    },
    { timeoutMs: 30_000, intervalMs: 200 },
  );
  return { account, key, tunnelId, app };
};

const poolFlags = async (harness: Harness, name: string, health: string): Promise<string[]> => {
  const file = join(await harness.folder(), 'group-key');
  writeFileSync(file, 'the key of the group', { mode: 0o600 });
  return ['--group', name, '--group-key-file', file, '--subdomain', name, '--health', health, '--health-interval', '1'];
};
