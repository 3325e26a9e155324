// Limits on the cost of alerts: the number of pending posts is bounded, and a slow receiver does not delay other receivers.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { eventually, FakeClock, startTcpServer } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { ALERT_STARTS_PER_TURN, SLOTS, StartQueue } from './alert-limiter.ts';
import { alertOf, memoryLog, senderOf, startReceiver } from './alerts.fixture.ts';

const silentLookup = () => new Promise<never>(() => {});

it('a hundred alerts to a receiver that hangs do not delay an alert to another receiver', async () => {
  const dead = await startTcpServer((socket) => void socket.resume());
  const good = await startReceiver();
  const clock = new FakeClock();
  const alerts = senderOf({ clock });
  // The first request loads and compiles modules, so a first alert is sent before the test begins.
  alerts.send(alertOf([`http://127.0.0.1:${good.port}/first`]));
  await eventually(() => expect(alerts.totals.tenant.delivered).toBe(1));
  for (let n = 0; n < 100; n++) alerts.send(alertOf([`http://127.0.0.1:${dead.port}/${n}`]));
  alerts.send(alertOf([`http://127.0.0.1:${good.port}/next`]));
  await eventually(() => expect(alerts.totals.tenant.delivered).toBe(2));
  await eventually(() => expect(dead.totalConnections).toBe(SLOTS.perHost));
  expect(alerts.totals.tenant.dropped).toBe(100 - SLOTS.perHost);
  await clock.advance(5000);
  await eventually(() => expect(alerts.totals.tenant.timeout).toBe(SLOTS.perHost));
  // After the timeout the slots are free again.
  alerts.send(alertOf([`http://127.0.0.1:${dead.port}/again`]));
  await eventually(() => expect(dead.totalConnections).toBe(SLOTS.perHost + 1));
  alerts.close();
  await Promise.all([dead.close(), good.close()]);
});

it('tenants share a bounded number of slots; the operator has separate slots', async () => {
  const operator = await startReceiver();
  const log = memoryLog();
  const clock = new FakeClock();
  const operatorUrl = `http://127.0.0.1:${operator.port}/`;
  const alerts = senderOf({ clock, operatorUrl, logger: log.logger, lookup: silentLookup });
  const many = (account: string) =>
    alerts.send(
      alertOf(
        Array.from({ length: 10_000 }, (_, n) => `http://h${n}.example/`),
        { account },
      ),
    );
  many('a');
  await eventually(() => expect(alerts.totals.operator.delivered).toBe(1));
  // One account gets at most a quarter of the tenants’ slots, and the last slots are only for accounts with few posts pending.
  expect(alerts.dropped.slots).toBe(10_000 - SLOTS.perAccount);
  for (const account of ['b', 'c', 'd']) many(account);
  await eventually(() => expect(alerts.totals.operator.delivered).toBe(4));
  const held = () => 40_000 - alerts.totals.tenant.dropped;
  expect(held()).toBeGreaterThanOrEqual(SLOTS.crowded);
  expect(held()).toBeLessThan(SLOTS.tenants);
  const before = alerts.totals.tenant.dropped;
  alerts.send(alertOf(['http://one-more.example/'], { account: 'late' }));
  await eventually(() => expect(alerts.totals.operator.delivered).toBe(5));
  expect(alerts.totals.tenant.dropped).toBe(before);
  alerts.send(alertOf(['http://one-more.example/'], { account: 'a' }));
  expect(alerts.totals.tenant.dropped).toBe(before + 1);
  await clock.advance(5000);
  await eventually(() => expect(alerts.totals.tenant.timeout).toBe(held() + 2));
  // After the timeout the slots are free again.
  alerts.send(alertOf(['http://later.example/'], { account: 'a' }));
  expect(alerts.totals.tenant.dropped).toBe(before + 1);
  alerts.close();
  await operator.close();
});

it('a tenant with no free slot at a host leaves the slots of another tenant at the same host free', async () => {
  const dead = await startTcpServer((socket) => void socket.resume());
  const clock = new FakeClock();
  const alerts = senderOf({ clock });
  const url = (n: number) => `http://127.0.0.1:${dead.port}/${n}`;
  for (let n = 0; n < 100; n++) alerts.send(alertOf([url(n)], { account: 'flooder' }));
  expect(alerts.dropped.slots).toBe(100 - SLOTS.perHost);
  alerts.send(alertOf([url(0)], { account: 'honest' }));
  expect(alerts.dropped.slots).toBe(100 - SLOTS.perHost);
  await eventually(() => expect(dead.totalConnections).toBe(SLOTS.perHost + 1));
  alerts.close();
  await dead.close();
});

it('the operator’s slots are bounded', async () => {
  const dead = await startTcpServer((socket) => void socket.resume());
  const clock = new FakeClock();
  const alerts = senderOf({ clock, operatorUrl: `http://127.0.0.1:${dead.port}/` });
  for (let n = 0; n < SLOTS.operator + 6; n++) alerts.send(alertOf([]));
  expect(alerts.totals.operator.dropped).toBe(6);
  await clock.advance(5000);
  await eventually(() => expect(alerts.totals.operator.timeout).toBe(SLOTS.operator));
  alerts.send(alertOf([]));
  expect(alerts.totals.operator.dropped).toBe(6);
  alerts.close();
  await dead.close();
});

it('repeated drops and refusals are logged once a second, with the number of suppressed lines', async () => {
  const log = memoryLog();
  const clock = new FakeClock();
  const alerts = senderOf({ clock, allowPrivate: false, logger: log.logger, lookup: silentLookup });
  for (let n = 0; n < 1000; n++) alerts.send(alertOf(['http://10.0.0.1/']));
  for (let n = 0; n < 1000; n++) alerts.send(alertOf(['http://same.example/']));
  await clock.advance(1000);
  alerts.send(alertOf(['http://10.0.0.2/', 'http://same.example/']));
  expect(log.lines).toMatchObject([
    { outcome: 'guard-refused', host: '10.0.0.1', reason: '10.0.0.1 is a private address' },
    { outcome: 'dropped', host: 'same.example' },
    { outcome: 'guard-refused', host: '10.0.0.2', suppressed: 999 },
    { outcome: 'dropped', host: 'same.example', suppressed: 1000 - SLOTS.perHost - 1 },
  ]);
  alerts.close();
});

it('a few alerts start in each turn of the event loop, in order and without losses', async () => {
  const queue = new StartQueue();
  const begun: number[] = [];
  const count = ALERT_STARTS_PER_TURN * 2 + 1;
  const begin = (n: number) => void queue.next().then(() => begun.push(n));
  for (let n = 0; n < count; n++) begin(n);
  expect(begun).toEqual([]);
  await nextTurn();
  expect(begun).toHaveLength(ALERT_STARTS_PER_TURN);
  await nextTurn();
  expect(begun).toHaveLength(ALERT_STARTS_PER_TURN * 2);
  await nextTurn();
  begin(count);
  await nextTurn();
  expect(begun).toEqual(Array.from({ length: count + 1 }, (_, n) => n));
});
