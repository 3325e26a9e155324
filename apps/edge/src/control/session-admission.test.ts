// Room on the control port: of one address, of one account, and behind a proxy.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { type ControlFixture, startControl } from './control.fixture.ts';
import { askUpgrade } from './raw-carrier.fixture.ts';
import { RawClient } from './raw-client.fixture.ts';

let fixture: ControlFixture;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await fixture.stop();
});

const start = async (gate: Parameters<typeof startControl>[0]['gate'] = {}): Promise<void> => {
  fixture = await startControl({ clock: new FakeClock(), gate });
};

const refusalOf = async (token: string): Promise<{ code: string; message: string; retryable: boolean }> => {
  const client = await RawClient.connect(fixture.port);
  client.auth(token);
  const { code, message, retryable } = await client.next('AuthError');
  return { code, message, retryable };
};

describe('one account', () => {
  it('holds so many connections; its next session is told SESSION_LIMIT, another account’s is let in', async () => {
    await start({ control: 200 });
    const { admission } = fixture.gate;
    for (let n = 0; n < 60; n += 1) await RawClient.enter(fixture.port, n % 2 === 0 ? 'alice' : 'alice-2');
    expect(await refusalOf('alice')).toEqual({
      code: 'SESSION_LIMIT',
      message: 'no room for another session: this account holds its limit of 64 connections',
      retryable: true,
    });
    await RawClient.enter(fixture.port, 'bob');
    expect(admission.refusals.get('account-limit')).toBe(1);
    expect([...admission.tickets].filter(({ account }) => account === 'account alice')).toHaveLength(60);
  });

  it('counts carriers, too, and has its place back when they close', async () => {
    await start({ control: 200 });
    const { admission } = fixture.gate;
    const { client, welcome } = await RawClient.enter(fixture.port, 'alice');
    const { socket } = await askUpgrade(fixture.port, { token: welcome.carriers.tokens[0] as string });
    expect([...admission.tickets].map(({ kind, account }) => [kind, account])).toEqual([
      ['control', 'account alice'],
      ['carrier', 'account alice'],
    ]);
    socket.destroy();
    client.ws.terminate();
    await eventually(() => expect([admission.used.control, admission.ofAccount('account alice')]).toEqual([0, 0]));
  });
});

describe('connections that have not authenticated', () => {
  const idle = async (): Promise<void> => {
    const socket = connect(fixture.port, '127.0.0.1').on('error', () => {});
    sockets.push(socket);
    await once(socket, 'connect');
  };

  it('are 256 of one address; the next one is refused, and told so', async () => {
    await start();
    const { admission } = fixture.gate;
    for (let n = 0; n < 256; n += 1) await idle();
    await eventually(() => expect(admission.used.control).toBe(256));
    const { status, text } = await askUpgrade(fixture.port, { path: '/_control', upgrade: 'websocket' });
    expect([status, text]).toEqual([429, expect.stringMatching(/Retry-After: 1\r\n.*256 connections that have not/s)]);
    sockets.shift()?.destroy();
    await eventually(() => expect(admission.used.control).toBe(255));
    await RawClient.enter(fixture.port, 'bob');
  });

  it('behind a trusted proxy count for the address it speaks for', async () => {
    await start({ trustedProxies: ['127.0.0.1'] });
    const { admission } = fixture.gate;
    const headers = { 'x-forwarded-for': '203.0.113.1' };
    await RawClient.connect(fixture.port, { headers });
    expect([...admission.tickets].map(({ network }) => network)).toEqual(['203.0.113.1']);
  });
});
