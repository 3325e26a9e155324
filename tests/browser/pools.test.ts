// Groups on the dashboard as their members fail and recover.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Harness } from '../system/harness.fixture.ts';
import { askHttp, endpointOf, startWeb } from '../system/http-tunnels.fixture.ts';
import { Account } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';

const answer: Parameters<typeof startWeb>[0] = (_request, response) => void response.end('hello');

/** Returns the flags of a member of group `name` with a probe every second. */
const memberFlags = async (harness: Harness, name: string): Promise<string[]> => {
  const file = join(await harness.folder(), 'group-key');
  writeFileSync(file, 'the key of the group', { mode: 0o600 });
  const probe = ['--health', 'http:/', '--health-interval', '1', '--health-max-failed', '1'];
  return ['--group', name, '--group-key-file', file, '--subdomain', name, ...probe];
};

it('the groups page follows a service that fails, a client that dies and their return, without redrawing the group', async ({
  profile,
  harness,
  stack,
}) => {
  const account = await Account.signUp(stack, 'pool');
  const key = await account.newKey();
  const name = `shop-${process.pid}`;
  const flags = await memberFlags(harness, name);
  const services = await Promise.all([1, 2, 3].map(() => startWeb(answer)));
  const start = (port: number) =>
    harness.run(['http', String(port), '--json', '--server', stack.control, ...flags], {
      env: { TUNNEL_API_KEY: key.token },
    });
  const members = await Promise.all(services.map(({ port }) => start(port)));
  for (const service of services) harness.use(service);
  const endpoint = endpointOf((await members[0]?.ready())?.public_url ?? '');

  await profile.logIn(account.email);
  const page = await profile.tab('/pools');
  const pool = page.getByRole('article', { name });
  const seen = (text: string | RegExp) => pool.getByText(text).first().waitFor();
  await seen('3 of 3 healthy');
  await pool.getByText('chosen at random').waitFor();
  await pool.getByRole('button', { name: /^Copy http/ }).waitFor();
  await page.evaluate('document.querySelector("article").dataset.marked = "yes"');
  for (let visits = 0; visits < 6; visits += 1) expect((await askHttp(endpoint)).status).toBe(200);
  await seen('6 connections');

  const [first] = services;
  await first?.close();
  await seen('2 of 3 healthy');
  await seen('✕ Unhealthy');
  await seen(/failures? in a row: \S+/);
  harness.use(await startWeb(answer, first?.port));
  await seen('3 of 3 healthy');

  await members[1]?.kill();
  await seen('2 of 2 healthy');
  await (await start(services[1]?.port ?? 0)).ready();
  await seen('3 of 3 healthy');
  // The element is still the same, so the page was not redrawn.
  expect(await page.evaluate('document.querySelector("article").dataset.marked')).toBe('yes');
});

it('the groups page warns about a group without a healthy member, and names a region that does not answer', async ({
  profile,
  harness,
  stack,
}) => {
  const account = await Account.signUp(stack, 'down');
  const key = await account.newKey();
  const name = `down-${process.pid}`;
  const service = await startWeb(answer);
  const args = [
    'http',
    String(service.port),
    '--json',
    '--server',
    stack.control,
    ...(await memberFlags(harness, name)),
  ];
  await (await harness.run(args, { env: { TUNNEL_API_KEY: key.token } })).ready();
  await profile.logIn(account.email);
  const page = await profile.tab('/pools');
  await page.getByText('1 of 1 healthy').waitFor();
  await service.close();
  await page.getByText('No healthy members.').waitFor();
  await page.getByRole('status').filter({ hasText: '1 group has no healthy member' }).waitFor();

  await page.route('**/load-balancing/groups', async (route) => {
    const response = await route.fetch();
    const body = (await response.json()) as { groups: unknown[]; warnings: string[] };
    await route.fulfill({
      response,
      json: { groups: [], warnings: ['region local did not answer'] } satisfies typeof body,
    });
  });
  await page.getByText(/[Rr]egion local did not answer/).waitFor();
});
