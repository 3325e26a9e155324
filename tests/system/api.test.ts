// Tests of the REST API of a running edge: which tunnels a caller sees, and the effect of closing a tunnel on its client and visitors.
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, startEchoServer } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, it } from './in-process.fixture.ts';
import type { Stack } from './stack.fixture.ts';
import { ask, fateOf, sendAndReadAll, visit } from './visitor.fixture.ts';

const ALICE = 'tnl_alice-key';
const BOB = 'tnl_bob-key';
const keyTable = (account: string, key: string): string =>
  `[[auth.keys]]\naccount = "${account}"\nsha256 = "${createHash('sha256').update(key).digest('hex')}"\n`;

const shared = new Harness();
let stack: Stack;
beforeAll(async () => {
  stack = await shared.stack({ tables: keyTable('alice', ALICE) + keyTable('bob', BOB) });
});
afterAll(() => shared.close());

describe.concurrent('DELETE /api/tunnels/:id', () => {
  it('closes the tunnel and notifies its client, which does not reopen the tunnel even after a reconnection', async ({
    harness,
  }) => {
    const echo = harness.use(await startEchoServer());
    const own = await harness.stack({ fixedPorts: true });
    const home = await harness.folder();
    mkdirSync(join(home, '.tunnel'));
    const tunnels = ['a', 'b'].map((name) => `  ${name}: { proto: tcp, local_port: ${echo.port} }`);
    writeFileSync(join(home, '.tunnel', 'config.yml'), `tunnels:\n${tunnels.join('\n')}\n`);
    const args = ['start', '--json', '--server', own.control, '--token-file', own.tokenFile];
    const program = await harness.run(args, { home });
    const one = await program.ready(1);
    const two = await program.ready(2);
    expect((await own.api(`/api/tunnels/${one.tunnel_id}`, { method: 'DELETE' })).status).toBe(204);
    expect(await program.waitFor('error')).toMatchObject({
      name: one.name,
      tunnel_id: one.tunnel_id,
      code: 'TUNNEL_CLOSED_BY_OPERATOR',
      message: 'the tunnel was closed through the edge API',
      fatal: false,
    });
    await eventually(async () => expect(await fateOf(one.assigned_port)).toBe('ECONNREFUSED'));
    expect((await own.api(`/api/tunnels/${one.tunnel_id}`)).status).toBe(404);
    expect((await own.api(`/api/tunnels/${one.tunnel_id}`, { method: 'DELETE' })).status).toBe(404);
    // The client does not reopen the tunnel after a reconnection either.
    await own.kill();
    await own.start();
    await program.waitFor('reconnected');
    expect((await own.tunnels()).map(({ name }) => name)).toEqual([two.name]);
    expect((await sendAndReadAll(two.assigned_port, Buffer.from('hi'))).toString()).toBe('hi');
  });

  it('ends the client with 4 after its last tunnel was closed, and frees the port', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const program = await harness.tcp(stack, echo.port);
    const { assigned_port: port, tunnel_id: id } = await program.ready();
    await stack.api(`/api/tunnels/${id}`, { method: 'DELETE' });
    expect(await program.exitCode()).toBe(4);
    expect(program.stderr[0]).toContain('the tunnel was closed through the edge API');
    expect(await fateOf(port)).toBe('ECONNREFUSED');
    const next = await harness.tcp(stack, echo.port, { flags: ['--remote-port', String(port)] });
    expect((await next.ready()).assigned_port).toBe(port);
  });

  it('lets open visitor connections finish', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const program = await harness.tcp(stack, echo.port);
    const { assigned_port: port, tunnel_id: id } = await program.ready();
    const visitor = await visit(port);
    expect(await ask(visitor, 'before')).toBe('before');
    expect((await stack.api(`/api/tunnels/${id}`, { method: 'DELETE' })).status).toBe(204);
    await program.waitFor('error');
    expect(await ask(visitor, 'after')).toBe('after');
    visitor.end();
    expect(await program.exitCode()).toBe(4);
  });
});

describe.concurrent('accounts of [[auth.keys]]', () => {
  it('see and close only their own tunnels; the admin token sees all tunnels', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const open = async (key: string) => {
      const args = ['tcp', String(echo.port), '--json', '--server', stack.control];
      return (await harness.run(args, { env: { TUNNEL_API_KEY: key } })).ready();
    };
    const alices = await open(ALICE);
    const bobs = await open(BOB);
    const operators = await (await harness.tcp(stack, echo.port)).ready();
    const idsSeenBy = async (token?: string) => (await stack.tunnels(token)).map((row) => row.tunnel_id).sort();
    expect(await idsSeenBy(ALICE)).toEqual([alices.tunnel_id]);
    expect(await idsSeenBy(BOB)).toEqual([bobs.tunnel_id]);
    expect(await idsSeenBy()).toEqual(expect.arrayContaining([alices.tunnel_id, bobs.tunnel_id, operators.tunnel_id]));
    for (const { tunnel_id: id } of [bobs, operators]) {
      expect((await stack.api(`/api/tunnels/${id}`, { token: ALICE })).status).toBe(404);
      expect((await stack.api(`/api/tunnels/${id}`, { token: ALICE, method: 'DELETE' })).status).toBe(404);
    }
    expect((await sendAndReadAll(bobs.assigned_port, Buffer.from('hi'))).toString()).toBe('hi');
    expect((await stack.api(`/api/tunnels/${alices.tunnel_id}`, { token: ALICE })).status).toBe(200);
    expect((await stack.api(`/api/tunnels/${alices.tunnel_id}`, { token: ALICE, method: 'DELETE' })).status).toBe(204);
    expect(await idsSeenBy(ALICE)).toEqual([]);
  });

  it('are required for tunnels: a missing or wrong key gets 401, and GET /api/status needs no key', async () => {
    const url = stack.run.api_url;
    const none = await fetch(`${url}/api/tunnels`);
    expect([none.status, await none.json()]).toMatchObject([401, { code: 'AUTH_TOKEN_MISSING' }]);
    const wrong = await stack.api('/api/tunnels', { token: 'wrong' });
    expect([wrong.status, await wrong.json()]).toMatchObject([401, { code: 'AUTH_TOKEN_INVALID' }]);
    const status = await fetch(`${url}/api/status`);
    expect([status.status, await status.json()]).toMatchObject([200, { tunnels: expect.any(Number) }]);
  });
});
