// Test of captured requests of two accounts at the same edge: the first account sends as many requests as it can and restarts its tunnels
// again and again.
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'vitest';
import { it } from '../in-process.fixture.ts';

const KEYS = { greedy: 'tnl_greedy-key', modest: 'tnl_modest-key' };
const TUNNELS = 24;
/**
 * Requests to each tunnel, per start of the greedy account. A capture takes about 30 KB, so the first start sends 72 MB to an edge that
 * keeps 64 MiB in total.
 */
const STARTS = [100, 30];
const LARGE = 'x'.repeat(12_000);
const BODY = Buffer.alloc(20_000, 'x');

it('an account keeps its captured requests despite a flood of captures and restarts of another account', async ({
  harness,
}) => {
  const service = createServer((asked, answer) => asked.pipe(answer));
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  harness.use({
    close: async () => {
      service.closeAllConnections();
      service.close();
    },
  });
  const { port } = service.address() as AddressInfo;
  const tables = Object.entries(KEYS).map(
    ([account, key]) =>
      `[[auth.keys]]\naccount = "${account}"\nsha256 = "${createHash('sha256').update(key).digest('hex')}"\n`,
  );
  const stack = await harness.stack({ tables: tables.join('') });
  const start = async (account: keyof typeof KEYS, count: number) => {
    const home = await harness.folder();
    mkdirSync(join(home, '.tunnel'));
    const tunnels = Array.from({ length: count }, (_, n) => `  t${n}: { proto: http, local_port: ${port} }`);
    writeFileSync(join(home, '.tunnel', 'config.yml'), `tunnels:\n${tunnels.join('\n')}\n`);
    const args = ['start', '--json', '--server', stack.control];
    const program = await harness.run(args, { home, env: { TUNNEL_API_KEY: KEYS[account] } });
    const opened = await Promise.all(tunnels.map((_, nth) => program.ready(nth + 1)));
    return { program, opened };
  };
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  harness.use({ close: async () => agent.destroy() });
  const post = (publicUrl: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const { hostname: host, port: at } = new URL(publicUrl);
      const asked = request(
        { agent, host: '127.0.0.1', port: at, headers: { host, 'x-large': LARGE }, method: 'POST' },
        (answer) => {
          answer.resume().once('end', resolve).once('error', reject);
        },
      );
      asked.once('error', reject).end(BODY);
    });
  const keptOf = async (id: string, key: string): Promise<number> => {
    const answer = await stack.api(`/api/tunnels/${id}/requests?limit=100`, { token: key });
    return ((await answer.json()) as { requests: unknown[] }).requests.length;
  };
  const modest = await start('modest', 1);
  const own = modest.opened[0] as (typeof modest.opened)[number];
  for (let n = 0; n < 50; n += 1) await post(own.public_url);
  for (const count of STARTS) {
    const { program, opened } = await start('greedy', TUNNELS);
    for (let n = 0; n < count; n += 1) await Promise.all(opened.map(({ public_url: url }) => post(url)));
    expect(await keptOf(own.tunnel_id, KEYS.modest)).toBe(50);
    // The rest of the memory holds the latest requests of the greedy account.
    const kept = await Promise.all(opened.map(({ tunnel_id: id }) => keptOf(id, KEYS.greedy)));
    const sum = kept.reduce((all, one) => all + one);
    expect(sum).toBeGreaterThan(Math.min(1500, TUNNELS * count - 1));
    expect(sum).toBeLessThan(2300);
    await program.close();
  }
  for (let n = 0; n < 50; n += 1) await post(own.public_url);
  expect(await keptOf(own.tunnel_id, KEYS.modest)).toBe(100);
});
