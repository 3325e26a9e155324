// An account with something on every page: live and past tunnels, captured requests, pools in good and in bad health, keys.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CreatedKey, TunnelLogEntry } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { askHttp, placeOf, startWeb } from '../system/http-scene.ts';
import type { Scene } from '../system/running-things.ts';
import type { TunnelProgram } from '../system/tunnel-program.ts';
import { Account } from './account.ts';
import type { StackPlace } from './own-stack.ts';

export interface Example {
  readonly account: Account;
  readonly key: CreatedKey;
  /** Of a live http tunnel with captured requests. */
  readonly tunnelId: string;
}

export interface ExampleNames {
  /** The subdomain of the tunnel with requests. */
  readonly web: string;
  readonly pool: string;
  readonly downPool: string;
}

export interface ExampleOptions {
  /** A new one unless told. */
  readonly account?: Account;
  /** To the pool that is well. */
  readonly visits?: number;
}

export const makeExample = async (
  scene: Scene,
  stack: StackPlace,
  names: ExampleNames,
  { account: known, visits = 12 }: ExampleOptions = {},
): Promise<Example> => {
  const account = known ?? (await Account.signUp(stack, 'ann'));
  const key = await account.newKey('laptop');
  await account.newKey('build server');
  const open = (port: number, flags: readonly string[]): Promise<TunnelProgram> =>
    scene.run(['http', String(port), '--json', '--server', stack.control, ...flags], {
      env: { TUNNEL_API_KEY: key.token },
    });
  const service = scene.keep(
    await startWeb((request, response) => {
      const status = request.url === '/missing' ? 404 : 200;
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ path: request.url, items: [{ id: 1, name: 'first' }] }));
    }),
  );
  const web = await open(service.port, ['--subdomain', names.web]);
  const good = await poolFlags(scene, names.pool, 'http:/');
  const bad = await poolFlags(scene, names.downPool, 'http:/missing');
  const members = await Promise.all([
    ...[1, 2, 3].map(() => open(service.port, good)),
    ...[1, 2].map(() => open(service.port, bad)),
  ]);
  const ended = await open(service.port, []);
  for (const program of [web, ended, ...members]) await program.ready();
  ended.signal('SIGTERM');
  await ended.exitCode();
  const place = placeOf((await web.ready()).public_url);
  for (const path of ['/', '/items?page=2', '/missing']) await askHttp(place, { path });
  await askHttp(place, {
    method: 'POST',
    path: '/items',
    body: '{"name":"second"}',
    headers: { 'content-type': 'application/json' },
  });
  const pool = placeOf((await members[0]?.ready())?.public_url ?? '');
  for (let done = 0; done < visits; done += 1) await askHttp(pool, { path: '/items' });
  const { tunnel_id: tunnelId } = await web.ready();
  await eventually(
    async () => {
      const { request_count: count } = await account.get<TunnelLogEntry>(`/usage/tunnels/${tunnelId}`);
      if (count < 4) throw new Error(`${count} requests are counted`);
    },
    { timeoutMs: 30_000, intervalMs: 200 },
  );
  return { account, key, tunnelId };
};

const poolFlags = async (scene: Scene, name: string, health: string): Promise<string[]> => {
  const file = join(await scene.folder(), 'group-key');
  writeFileSync(file, 'the key of the group', { mode: 0o600 });
  return ['--group', name, '--group-key-file', file, '--subdomain', name, '--health', health, '--health-interval', '1'];
};
