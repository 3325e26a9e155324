// A client sending faster than its rate is not read for a while, but is never closed, and other clients are not affected.
import type { Socket } from 'node:net';
import { Fault } from '@tunnel/errors';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type ControlFixture, startControl } from './control.fixture.ts';
import { RawClient } from './raw-client.fixture.ts';

let clock: FakeClock;
let fixture: ControlFixture;

beforeEach(async () => {
  clock = new FakeClock();
  fixture = await startControl({ clock, ports: 4 });
});
afterEach(() => fixture.stop());

const enter = async (token: string): Promise<RawClient> => (await RawClient.enter(fixture.port, token)).client;
const pongs = (client: RawClient): number => client.heard.filter(({ type }) => type === 'Pong').length;
const flood = (client: RawClient, count: number): void => {
  for (let id = 0; id < count; id += 1) client.send({ type: 'Ping', id });
};

/** Advances the fake clock until the expectation holds. The edge handles frames in turns of the event loop, independently of the clock. */
const advanceUntil = (holds: () => void): Promise<void> =>
  eventually(async () => {
    await clock.advance(100);
    holds();
  });

it('a flood of frames is handled as a burst, then at the rate, in order, and every frame gets a response', async () => {
  const client = await enter('op');
  flood(client, 1000);
  // The Auth frame used the first of the 400 tokens.
  await eventually(() => expect(pongs(client)).toBe(399));
  await clock.advance(1000);
  await eventually(() => expect(pongs(client)).toBeGreaterThanOrEqual(495));
  expect(pongs(client)).toBeLessThanOrEqual(501);
  expect(fixture.control.figures.heldBack).toBeGreaterThan(0);
  await advanceUntil(() => expect(pongs(client)).toBe(1000));
  expect(client.heard.filter(({ type }) => type === 'Pong').map(({ id }) => id)).toEqual([...Array(1000).keys()]);
});

it('a client held back does not time out, and the 25 s of silence start when reading resumes', async () => {
  const client = await enter('op');
  // Invalid frames for 46 s of the rate are waiting at the edge.
  for (let n = 0; n < 1000; n += 1) client.ws.send('');
  await eventually(() => expect(fixture.control.figures.heldBack).toBeGreaterThan(0));
  for (let n = 0; n < 40; n += 1) await clock.advance(1000);
  expect(fixture.control.figures.sessions).toBe(1);
  for (let n = 0; n < 10; n += 1) await clock.advance(1000);
  await eventually(() => expect(client.heard.filter(({ type }) => type === 'Error')).toHaveLength(1000));
  // The 25 s of silence start when reading resumed, not at the client’s last frame.
  await clock.advance(20_000);
  expect(fixture.control.figures.sessions).toBe(1);
  await clock.advance(25_000);
  expect(fixture.control.figures.sessions).toBe(0);
});

it('WebSocket pings are rate-limited too, and one pong responds to all waiting pings', async () => {
  const client = await enter('op');
  let answered = 0;
  client.ws.on('pong', () => (answered += 1));
  client.ws.ping('first');
  await eventually(() => expect(answered).toBe(1));
  for (let n = 0; n < 2000; n += 1) client.ws.ping(`${n}`);
  client.send({ type: 'Ping', id: 1 });
  await eventually(() => expect(fixture.control.figures.heldBack).toBeGreaterThan(0));
  expect(pongs(client)).toBe(0);
  let last = '';
  client.ws.on('pong', (data) => (last = String(data)));
  await advanceUntil(() => expect([pongs(client), last]).toEqual([1, '1999']));
  // Pings covered by tokens got a pong each; of the waiting pings only some did.
  expect(answered).toBeLessThan(1000);
});

it('a flood affects no other account, while connections of the same account share the rate', async () => {
  const flooders = await Promise.all(Array.from({ length: 6 }, () => enter('alice')));
  for (const client of flooders) flood(client, 1000);
  await eventually(() => expect(flooders.map(pongs).reduce((sum, n) => sum + n)).toBeGreaterThanOrEqual(1500));
  const bob = await enter('bob');
  expect((await bob.registered()).assigned_port).toBeGreaterThan(0);
  expect(flooders.map(pongs).reduce((sum, n) => sum + n)).toBeLessThanOrEqual(1600);
  expect(flooders.every(({ ws }) => ws.readyState === ws.OPEN)).toBe(true);
});

it('a client with 100 tunnels is ready at once, without being held back', async () => {
  const client = await enter('alice');
  registerMany(client, 0, 100);
  await eventually(() => expect(fixture.tunnels.size).toBe(100));
  expect(fixture.control.figures.heldBack).toBe(0);
});

const registerMany = (client: RawClient, from: number, to: number): void => {
  for (let n = from; n < to; n += 1) client.register({ protocol: 'http', subdomain: `s${n}` }, `r${n}`);
};
/** Ids of answered requests, in the order of the responses. */
const answered = (client: RawClient): unknown[] =>
  client.heard.filter(({ request_id: id }) => id !== undefined).map(({ request_id: id }) => id);

it('registrations over the rate wait, while pings and health reports overtake them', async () => {
  const client = await enter('alice');
  const tunnelId = (await client.registered({ protocol: 'http', subdomain: 'first' })).tunnel_id;
  registerMany(client, 0, 900);
  await eventually(() => expect(answered(client)).toHaveLength(399));
  client.send({ type: 'TunnelHealthy', tunnel_id: tunnelId });
  client.send({ type: 'RequestCarriers', count: 1 });
  client.send({ type: 'Ping', id: 1 });
  await eventually(() => expect(pongs(client)).toBe(1));
  expect(client.heard.filter(({ type }) => type === 'CarrierTokens')).toHaveLength(1);
  expect(answered(client)).toHaveLength(399);
  // A connection can register 200 tunnels per second.
  await clock.advance(1000);
  await eventually(() => expect(answered(client).length).toBeGreaterThanOrEqual(590));
  expect(answered(client).length).toBeLessThanOrEqual(600);
  await advanceUntil(() => expect(answered(client)).toHaveLength(900));
  expect(answered(client)).toEqual(Array.from({ length: 900 }, (_, n) => `r${n}`));
});

it('a client with 512 waiting registrations is not read, and no registration is lost', async () => {
  const client = await enter('alice');
  registerMany(client, 0, 5000);
  await eventually(() => expect(fixture.control.figures.heldBack).toBe(1));
  client.send({ type: 'Ping', id: 1 });
  for (let n = 0; n < 10; n += 1) await clock.advance(100);
  expect(pongs(client)).toBe(0);
  await advanceUntil(() => expect([pongs(client), answered(client).length]).toEqual([1, 5000]));
  expect(fixture.tunnels.size).toBe(100);
  expect(answered(client)).toEqual(Array.from({ length: 5000 }, (_, n) => `r${n}`));
});

it('an unregistration waits for the registrations before it', async () => {
  const client = await enter('alice');
  const { tunnel_id: tunnelId } = await client.registered({ protocol: 'http', subdomain: 'first' });
  registerMany(client, 0, 450);
  client.send({ type: 'UnregisterTunnel', request_id: 'end', tunnel_id: tunnelId });
  await advanceUntil(() => expect(answered(client)).toHaveLength(451));
  expect(answered(client).at(-1)).toBe('end');
});

it('connections of an account share a burst of 1600 registrations; another account has a separate burst', async () => {
  const clients = await Promise.all(Array.from({ length: 6 }, () => enter('alice')));
  for (const client of clients) registerMany(client, 0, 400);
  const sum = (): number => clients.reduce((all, client) => all + answered(client).length, 0);
  await eventually(() => expect(sum()).toBe(1600));
  const bob = await enter('bob');
  expect((await bob.registered({ protocol: 'http' })).public_url).toContain('edge.test');
  expect(sum()).toBe(1600);
  await advanceUntil(() => expect(sum()).toBe(2400));
});

it('a client that leaves with registrations waiting leaves no tunnel and no session', async () => {
  const client = await enter('alice');
  registerMany(client, 0, 600);
  await eventually(() => expect(answered(client)).toHaveLength(400));
  client.send({ type: 'ShuttingDown', reason: 'done', drain_secs: 0 });
  await eventually(() => expect(fixture.tunnels.size).toBe(0));
  client.ws.close();
  await client.closed;
  for (let n = 0; n < 50; n += 1) await clock.advance(100);
  expect([fixture.tunnels.size, fixture.control.figures.sessions]).toEqual([0, 0]);
});

it('a new client with 99 probed tunnels is not held back: each registration includes a first health report', async () => {
  const client = await enter('alice');
  const registered: string[] = [];
  for (let n = 0; n < 99; n += 1) client.register({ protocol: 'http' }, `r${n}`);
  for (let n = 0; n < 99; n += 1) registered.push((await client.next('TunnelRegistered')).tunnel_id);
  for (const tunnel_id of registered) client.send({ type: 'TunnelHealthy', tunnel_id });
  await client.settle();
  expect(fixture.control.figures.heldBack).toBe(0);
  // Further reports cost frame tokens: 398 of the 400 tokens are left after Auth and a ping.
  for (let n = 0; n < 5; n += 1) for (const tunnel_id of registered) client.send({ type: 'TunnelHealthy', tunnel_id });
  await eventually(() => expect(fixture.control.figures.heldBack).toBe(1));
});

it('a long frame uses more of the rate', async () => {
  const client = await enter('op');
  const filler = 'x'.repeat(63 * 1024);
  for (let id = 0; id < 60; id += 1) client.send({ type: 'Ping', id, filler });
  // The 399 remaining tokens pay for 25 frames at 16 tokens each.
  await eventually(() => expect(fixture.control.figures.heldBack).toBeGreaterThan(0));
  await eventually(() => expect(pongs(client)).toBe(25));
});

it('a flooding client is closed after its key is revoked, and cannot keep sending', async () => {
  const client = await enter('alice');
  flood(client, 2000);
  await eventually(() => expect(fixture.control.figures.heldBack).toBeGreaterThan(0));
  fixture.backend.revoke({ accountId: 'alice', fault: new Fault('AUTH_TOKEN_INVALID') });
  expect(await client.next('Error')).toMatchObject({ fatal: true });
  await clock.advance(2000);
  await client.closed;
});

it('a lost connection of a client held back is detected by the edge’s pings', async () => {
  const client = await enter('op');
  flood(client, 5000);
  await eventually(() => expect(fixture.control.figures.heldBack).toBeGreaterThan(0));
  (client.ws as unknown as { _socket: Socket })._socket.resetAndDestroy();
  await eventually(async () => {
    await clock.advance(10_000);
    expect(fixture.control.figures.sessions).toBe(0);
  });
});

it('endless fragments of a WebSocket message close the connection', async () => {
  const client = await enter('op');
  const parts = (client.ws as unknown as { _socket: Socket })._socket;
  const part = (opcode: number) => Buffer.from([opcode, 0x80, 0, 0, 0, 0]);
  parts.write(Buffer.concat([part(0x01), ...Array.from({ length: 1000 }, () => part(0x00))]));
  expect((await client.closed).code).toBe(1008);
});

it('unauthenticated connections share the rate of their network, so reconnecting brings no new tokens', async () => {
  const strangers = await Promise.all(Array.from({ length: 6 }, () => RawClient.connect(fixture.port)));
  for (const stranger of strangers) flood(stranger, 400);
  const sum = (): number => strangers.reduce((all, stranger) => all + pongs(stranger), 0);
  await eventually(() => expect(sum()).toBe(1600));
  await eventually(() => expect(fixture.control.figures.heldBack).toBeGreaterThan(0));
  expect(sum()).toBe(1600);
  await advanceUntil(() => expect(sum()).toBe(2400));
});
