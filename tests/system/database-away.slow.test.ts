// Tests of a database that dies under load or is missing at the start: API calls get a 503 with Retry-After, tunnels keep working, and no
// usage is lost.
import type { ApiError } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { DatabaseProxy } from '../../apps/platform/src/db/database-proxy.fixture.ts';
import { createTestDatabase } from '../../apps/platform/src/db/test-database.fixture.ts';
import { countedEcho } from './counted-service.fixture.ts';
import { serversOn } from './embedded-database.fixture.ts';
import { it } from './in-process.fixture.ts';
import { call, MANY_LOGINS, openWith, Person, type Reply, startPlatform } from './platform-test.fixture.ts';
import { spawnedServerCommand } from './server-command.fixture.ts';
import type { Stack } from './stack.fixture.ts';
import { sendAndReadAll } from './visitor.fixture.ts';

const SOON = { timeoutMs: 30_000 };
const WHOLE_TEST = { timeoutMs: 120_000 };
const SIZE = 5000;

/** Kills the database after every restart, until `end` is called. */
const keepDown = (stack: Stack): { end(): Promise<void> } => {
  let isOver = false;
  const done = eventually(() => {
    for (const pid of serversOn(stack.dataDir)) process.kill(pid, 'SIGKILL');
    expect(isOver).toBe(true);
  }, WHOLE_TEST);
  return {
    end: () => {
      isOver = true;
      return done;
    },
  };
};

const healthOf = async (stack: Stack): Promise<number[]> =>
  (await Promise.all([call(stack, '/health'), call(stack, '/health/db')])).map(({ status }) => status);

const isTellingToComeAgain = ({ status, headers, body }: Reply): boolean =>
  status === 503 && Number(headers.get('retry-after')) >= 1 && (body as ApiError).code === 'DATABASE_AWAY';

it('while the database is killed under load, the API returns 503, tunnels keep working, and their usage is counted later', async ({
  harness,
}) => {
  const stack = await startPlatform(harness, { programs: true, fixedPorts: true });
  const person = await Person.signUp(stack);
  const echo = harness.use(await countedEcho());
  const tunnel = await openWith(harness, stack, await person.newKey(), ['tcp', echo.port]);
  const { assigned_port, tunnel_id } = await tunnel.ready();
  const seen: Reply[] = [];
  let visits = 0;
  let isOver = false;
  const repeat = async (act: () => Promise<void>) => {
    while (!isOver) await act();
  };
  const load = Promise.all([
    ...['/usage', '/keys', '/auth/me', '/usage/tunnels'].map((path) =>
      repeat(async () => void seen.push(await person.call(path))),
    ),
    repeat(async () => {
      expect((await sendAndReadAll(assigned_port, Buffer.alloc(SIZE, 'v'))).length).toBe(SIZE);
      visits += 1;
    }),
  ]);

  const down = keepDown(stack);
  await eventually(async () => expect(await healthOf(stack)).toEqual([200, 503]), SOON);
  const before = visits;
  await eventually(() => expect(visits).toBeGreaterThan(before + 10), SOON);
  await eventually(() => expect(seen.filter(isTellingToComeAgain).length).toBeGreaterThan(10), SOON);
  await down.end();
  // If the database does not come back, the failure shows the last log lines of the server.
  const said = (): string => stack.program.stderr.slice(-40).join('\n');
  await eventually(async () => expect(await healthOf(stack), said()).toEqual([200, 200]), SOON);
  const later = await person.call('/usage');
  isOver = true;
  await load;

  expect(later.status).toBe(200);
  const others = seen.filter((reply) => reply.status !== 200 && !isTellingToComeAgain(reply));
  expect(others.map(({ status, body }) => [status, body])).toEqual([]);
  expect([stack.program.exit, tunnel.exit]).toEqual([null, null]);
  // An operator command finds the database that the server has started.
  expect(await spawnedServerCommand(stack, 'admin', 'invite', 'new@example.com')).toContainEqual(
    expect.stringMatching(/^https?:/),
  );
  await eventually(async () => {
    const { request_count, bytes_proxied } = await person.entry(tunnel_id);
    expect([request_count, bytes_proxied]).toEqual([visits, 2 * visits * SIZE]);
  }, SOON);
}, 120_000);

it('a platform started without its database is healthy only at /health, and works fully once the database appears', async ({
  harness,
}) => {
  const { url } = harness.use(await createTestDatabase({ empty: true }));
  const proxy = new DatabaseProxy(url);
  const nowhere = await proxy.reserve();
  harness.use({ close: () => proxy.cut() });
  const options = { databaseUrl: nowhere.reveal(), tables: MANY_LOGINS };
  const platform = await harness.stack({ command: 'platform', programs: true, ...options });
  expect(await healthOf(platform)).toEqual([200, 503]);
  for (const path of ['/auth/me', '/keys', '/openapi.json']) {
    const reply = await call(platform, path);
    expect([path, isTellingToComeAgain(reply)]).toEqual([path, true]);
  }
  const body = { email: 'ann@example.com', password: 'correct horse battery' };
  expect(isTellingToComeAgain(await call(platform, '/auth/register', { method: 'POST', body }))).toBe(true);

  await proxy.open();
  await eventually(async () => expect(await healthOf(platform)).toEqual([200, 200]), SOON);
  await eventually(async () => expect((await call(platform, '/keys')).status).toBe(401), SOON);
  const person = await Person.signUp(platform);
  expect((await person.call('/keys')).body).toEqual([]);
  expect(platform.program.exit).toBeNull();
}, 120_000);
