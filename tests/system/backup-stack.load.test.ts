// A whole server restored to an earlier moment: accounts, tunnels, and the usage after that moment, which the edge delivers again.
import { cpSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { countedEcho } from './counted-service.fixture.ts';
import { ask } from './embedded-database.fixture.ts';
import { call, openWith, Person, startPlatform } from './platform-test.fixture.ts';
import { serverCommand } from './server-command.fixture.ts';
import { it } from './system-test.fixture.ts';
import { sendAndReadAll } from './visitor.fixture.ts';

const SOON = { timeoutMs: 60_000, intervalMs: 200 };
const PASSWORD = 'correct horse battery';

it('a server restored to an earlier moment has the accounts of that moment, and counts all usage of before and after exactly once', async ({
  harness,
}) => {
  const backupDir = await harness.folder();
  const stack = await startPlatform(harness, {
    fixedPorts: true,
    tables: `[backup]\ndir = "${backupDir}"\nevery_hours = 0`,
  });
  const early = await Person.signUp(stack, 'early');
  const key = await early.newKey();
  const echo = harness.use(await countedEcho());
  const client = await openWith(harness, stack, key, ['tcp', echo.port]);
  const { tunnel_id, assigned_port } = await client.ready();
  let sent = 0;
  const send = async (bytes: number, port = assigned_port): Promise<void> => {
    await sendAndReadAll(port, Buffer.alloc(bytes, 'x'));
    sent += 2 * bytes;
  };
  const counted = (person: Person, bytes: number): Promise<void> =>
    eventually(async () => expect((await person.entry(tunnel_id)).bytes_proxied).toBe(bytes), SOON);

  await send(10_000);
  await counted(early, sent);
  const [name = ''] = await serverCommand(stack, 'backup', 'create');
  await send(5000);
  await counted(early, sent);
  const moment = new Date().toISOString();
  await send(7000);
  await counted(early, sent);
  const late = await Person.signUp(stack, 'late');
  const url = stack.databaseUrl;
  if (url === null) throw new Error('the stack has no database');
  await ask(url, 'select pg_switch_wal()');
  await eventually(async () => {
    const [listed] = JSON.parse((await serverCommand(stack, 'backup', 'list', '--json')).join('')) as {
      name: string;
      wal_to: string;
      ok: boolean;
    }[];
    expect([listed?.name, listed?.ok]).toEqual([name, true]);
    expect(Date.parse(listed?.wal_to ?? '')).toBeGreaterThan(Date.parse(moment));
  }, SOON);
  await stack.stop();

  const old = join(await harness.folder(), 'old');
  renameSync(stack.dataDir, old);
  const restore = ['backup', 'restore', '--from', backupDir, '--to', stack.dataDir, '--time', moment];
  const [first = ''] = await serverCommand(stack, ...restore, '--revoke-sessions');
  const reached = Date.parse(first.replace('restored to ', ''));
  expect(reached).toBeLessThanOrEqual(Date.parse(moment));
  expect(reached).toBeGreaterThan(Date.parse(moment) - 10_000);
  rmSync(join(stack.dataDir, 'edge-journal'), { recursive: true });
  cpSync(join(old, 'edge-journal'), join(stack.dataDir, 'edge-journal'), { recursive: true });
  await stack.start();

  expect((await early.call('/usage')).status).toBe(401);
  const login = (email: string) =>
    call<{ access_token: string }>(stack, '/auth/login', { method: 'POST', body: { email, password: PASSWORD } });
  expect((await login(late.email)).status).toBe(401);
  const again = await login(early.email);
  expect(again.status).toBe(200);
  const person = new Person(stack, early.email, again.body.access_token);
  const port = await eventually(async () => {
    const [tunnel] = await stack.tunnels();
    if (tunnel === undefined) throw new Error('the client has not reconnected yet');
    return tunnel.assigned_port;
  }, SOON);
  const before = sent;
  await send(3000, port);
  await eventually(async () => expect(await person.usage()).toMatchObject({ total_bytes_30d: sent }), SOON);
  expect((await person.entry(tunnel_id)).bytes_proxied).toBeGreaterThanOrEqual(before);
  await serverCommand(stack, 'backup', 'verify', name);
}, 400_000);
