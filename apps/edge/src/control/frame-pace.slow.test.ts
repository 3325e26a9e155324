// A client that sends faster than it may: not read, never closed, and nobody else notices.
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

/** A frame is taken up each turn of the event loop, which the clock does not know of. */
const advanceUntil = (holds: () => void): Promise<void> =>
  eventually(async () => {
    await clock.advance(100);
    holds();
  });

it('gets what it saved up at once and then the rate, in order, and every frame is answered in the end', async () => {
  const client = await enter('op');
  flood(client, 1000);
  // Auth was the first of 400.
  await eventually(() => expect(pongs(client)).toBe(399));
  await clock.advance(1000);
  await eventually(() => expect(pongs(client)).toBeGreaterThanOrEqual(495));
  expect(pongs(client)).toBeLessThanOrEqual(501);
  expect(fixture.control.figures.heldBack).toBeGreaterThan(0);
  await advanceUntil(() => expect(pongs(client)).toBe(1000));
  expect(client.heard.filter(({ type }) => type === 'Pong').map(({ id }) => id)).toEqual([...Array(1000).keys()]);
});

it('is not silent while it is not read, however long', async () => {
  const client = await enter('op');
  // 46 s of odd frames wait at the edge.
  for (let n = 0; n < 1000; n += 1) client.ws.send('');
  await eventually(() => expect(fixture.control.figures.heldBack).toBeGreaterThan(0));
  for (let n = 0; n < 40; n += 1) await clock.advance(1000);
  expect(fixture.control.figures.sessions).toBe(1);
  for (let n = 0; n < 10; n += 1) await clock.advance(1000);
  await eventually(() => expect(client.heard.filter(({ type }) => type === 'Error')).toHaveLength(1000));
  // 25 s from when it was read again, not from its last frame.
  await clock.advance(20_000);
  expect(fixture.control.figures.sessions).toBe(1);
  await clock.advance(25_000);
  expect(fixture.control.figures.sessions).toBe(0);
});

it('pays for pings of the WebSocket, too, and one answer stands for all that waited', async () => {
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
  // Those that it had tokens for, and some of the others.
  expect(answered).toBeLessThan(1000);
});

it('leaves other accounts alone; its own other connections share its tokens', async () => {
  const flooders = await Promise.all(Array.from({ length: 6 }, () => enter('alice')));
  for (const client of flooders) flood(client, 1000);
  await eventually(() => expect(flooders.map(pongs).reduce((sum, n) => sum + n)).toBeGreaterThanOrEqual(1500));
  const bob = await enter('bob');
  expect((await bob.registered()).assigned_port).toBeGreaterThan(0);
  expect(flooders.map(pongs).reduce((sum, n) => sum + n)).toBeLessThanOrEqual(1600);
  expect(flooders.every(({ ws }) => ws.readyState === ws.OPEN)).toBe(true);
});

it('with 100 tunnels is ready at once', async () => {
  const client = await enter('alice');
  for (let n = 0; n < 100; n += 1) client.register({ protocol: 'http', subdomain: `s${n}` }, `r${n}`);
  await eventually(() => expect(fixture.tunnels.size).toBe(100));
  expect(fixture.control.figures.heldBack).toBe(0);
});

it('with 100 tunnels and their probes is not behind when it has just come: each registration pays for a first report', async () => {
  const client = await enter('alice');
  const registered: string[] = [];
  for (let n = 0; n < 99; n += 1) client.register({ protocol: 'http' }, `r${n}`);
  for (let n = 0; n < 99; n += 1) registered.push((await client.next('TunnelRegistered')).tunnel_id);
  for (const tunnel_id of registered) client.send({ type: 'TunnelHealthy', tunnel_id });
  await client.settle();
  expect(fixture.control.figures.heldBack).toBe(0);
  // The next ones cost what reports cost: of the 400 tokens, Auth, 99 registrations and a ping have left 2.
  for (const tunnel_id of registered) client.send({ type: 'TunnelHealthy', tunnel_id });
  await eventually(() => expect(fixture.control.figures.heldBack).toBe(1));
});

it('pays for the length of what has to be read', async () => {
  const client = await enter('op');
  const filler = 'x'.repeat(63 * 1024);
  for (let id = 0; id < 60; id += 1) client.send({ type: 'Ping', id, filler });
  // 399 tokens at 16 each.
  await eventually(() => expect(fixture.control.figures.heldBack).toBeGreaterThan(0));
  await eventually(() => expect(pongs(client)).toBe(25));
});

it('is closed when its key goes, and cannot use the goodbye to send on', async () => {
  const client = await enter('alice');
  flood(client, 2000);
  await eventually(() => expect(fixture.control.figures.heldBack).toBeGreaterThan(0));
  fixture.backend.revoke({ accountId: 'alice', fault: new Fault('AUTH_TOKEN_INVALID') });
  expect(await client.next('Error')).toMatchObject({ fatal: true });
  await clock.advance(2000);
  await client.closed;
});

it('that has gone is noticed by our pings, although nothing of it is read', async () => {
  const client = await enter('op');
  flood(client, 5000);
  await eventually(() => expect(fixture.control.figures.heldBack).toBeGreaterThan(0));
  (client.ws as unknown as { _socket: Socket })._socket.resetAndDestroy();
  await eventually(async () => {
    await clock.advance(10_000);
    expect(fixture.control.figures.sessions).toBe(0);
  });
});

it('cannot get around its pace by parts of messages that never end', async () => {
  const client = await enter('op');
  const parts = (client.ws as unknown as { _socket: Socket })._socket;
  const part = (opcode: number) => Buffer.from([opcode, 0x80, 0, 0, 0, 0]);
  parts.write(Buffer.concat([part(0x01), ...Array.from({ length: 1000 }, () => part(0x00))]));
  expect((await client.closed).code).toBe(1008);
});

it('before it has said who it is, shares the tokens of its network: a new connection brings no new ones', async () => {
  const strangers = await Promise.all(Array.from({ length: 6 }, () => RawClient.connect(fixture.port)));
  for (const stranger of strangers) flood(stranger, 400);
  const sum = (): number => strangers.reduce((all, stranger) => all + pongs(stranger), 0);
  await eventually(() => expect(sum()).toBe(1600));
  await eventually(() => expect(fixture.control.figures.heldBack).toBeGreaterThan(0));
  expect(sum()).toBe(1600);
  await advanceUntil(() => expect(sum()).toBe(2400));
});
