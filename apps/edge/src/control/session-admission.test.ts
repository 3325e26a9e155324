// Limits on connections to the control port: per address, per account, and behind a proxy.
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

const start = async (
  gate: Parameters<typeof startControl>[0]['gate'] = {},
  more: Partial<Parameters<typeof startControl>[0]> = {},
): Promise<void> => {
  fixture = await startControl({ clock: new FakeClock(), gate, ...more });
};

const refusalOf = async (token: string): Promise<{ code: string; message: string; retryable: boolean }> => {
  const client = await RawClient.connect(fixture.port);
  client.auth(token);
  const { code, message, retryable } = await client.next('AuthError');
  return { code, message, retryable };
};

describe('an account', () => {
  it('at its connection limit gets SESSION_LIMIT for the next session; another account is accepted', async () => {
    await start({ control: 200 });
    const { admission } = fixture.gate;
    for (let n = 0; n < 12; n += 1) await RawClient.enter(fixture.port, n % 2 === 0 ? 'alice' : 'alice-2');
    expect(await refusalOf('alice')).toEqual({
      code: 'SESSION_LIMIT',
      message: 'cannot open another session: connection limit of 64 reached for this account',
      retryable: true,
    });
    await RawClient.enter(fixture.port, 'bob');
    expect(admission.refusals.get('account-limit')).toBe(1);
    expect([...admission.tickets].filter(({ account }) => account === 'account alice')).toHaveLength(12);
  });

  it('gets all carriers of its accepted sessions, even if 20 clients connect at once', async () => {
    await start({ control: 200 });
    const clients = await Promise.all(Array.from({ length: 20 }, () => RawClient.connect(fixture.port)));
    for (const client of clients) client.auth('alice');
    const answers = await Promise.allSettled(clients.map((client) => client.next('AuthOk')));
    const welcomes = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
    expect(welcomes).toHaveLength(12);
    const tokens = welcomes.flatMap(({ carriers }) => carriers.tokens);
    const statuses = await Promise.all(tokens.map((token) => askUpgrade(fixture.port, { token })));
    for (const { socket } of statuses) sockets.push(socket);
    expect(new Set(statuses.map(({ status }) => status))).toEqual(new Set([101]));
    expect(fixture.gate.admission.used.control).toBe(60);
  });

  it('at its limit can resume a session while the old connection is open', async () => {
    await start({ control: 200 });
    const { welcome } = await RawClient.enter(fixture.port, 'alice');
    for (let n = 1; n < 12; n += 1) await RawClient.enter(fixture.port, 'alice');
    const claim = { session_id: welcome.session_id, secret: welcome.resume_secret };
    const back = await RawClient.enter(fixture.port, 'alice', claim);
    expect(back.welcome).toMatchObject({ resumed: true, session_id: welcome.session_id });
    expect((await refusalOf('alice')).code).toBe('SESSION_LIMIT');
  });

  it('with lost sessions is limited to its share of sessions; another account is accepted', async () => {
    await start({}, { sessionLimits: { limit: 20, perHolder: 5 } });
    for (let n = 0; n < 5; n += 1) (await RawClient.enter(fixture.port, 'alice')).client.ws.terminate();
    expect((await refusalOf('alice')).message).toMatch(/session limit of 5 reached for this account/);
    await RawClient.enter(fixture.port, 'bob');
  });

  it('has its carriers counted too, and gets the room back when connections close', async () => {
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

describe('unauthenticated connections', () => {
  const idle = async (): Promise<void> => {
    const socket = connect(fixture.port, '127.0.0.1').on('error', () => {});
    sockets.push(socket);
    await once(socket, 'connect');
  };

  it('are limited to 256 per address, and the next connection gets a 429', async () => {
    await start();
    const { admission } = fixture.gate;
    for (let n = 0; n < 256; n += 1) await idle();
    await eventually(() => expect(admission.used.control).toBe(256));
    const { status, text } = await askUpgrade(fixture.port, { path: '/_control', upgrade: 'websocket' });
    expect([status, text]).toEqual([
      429,
      expect.stringMatching(/Retry-After: 1\r\n.*limit of 256 unauthenticated connections/s),
    ]);
    sockets.shift()?.destroy();
    await eventually(() => expect(admission.used.control).toBe(255));
    await RawClient.enter(fixture.port, 'bob');
  });

  it('through a trusted proxy count toward the forwarded address', async () => {
    await start({ trustedProxies: ['127.0.0.1'] });
    const { admission } = fixture.gate;
    const headers = { 'x-forwarded-for': '203.0.113.1' };
    await RawClient.connect(fixture.port, { headers });
    expect([...admission.tickets].map(({ network }) => network)).toEqual(['203.0.113.1']);
  });
});
