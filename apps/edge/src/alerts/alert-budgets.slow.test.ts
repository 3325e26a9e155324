// Budgets of alerts per minute: alerts of a group and of an account, and posts to a host.

import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { AlertSender } from './alert-sender.ts';
import { alertOf, type MemoryLog, memoryLog, type Receiver, senderOf, startReceiver } from './alerts.fixture.ts';

let clock: FakeClock;
let receiver: Receiver;
let log: MemoryLog;
let alerts: AlertSender;
const operatorUrl = () => `http://127.0.0.1:${receiver.port}/operator`;

beforeEach(async () => {
  clock = new FakeClock();
  receiver = await startReceiver();
  log = memoryLog();
  alerts = senderOf({ clock, logger: log.logger, rates: undefined, operatorUrl: operatorUrl() });
});
afterEach(async () => {
  alerts.close();
  await receiver.close();
});

const url = (path: string) => `http://127.0.0.1:${receiver.port}/${path}`;
/** Waits until every alert within the budgets has arrived. */
const settled = async (): Promise<void> => {
  await eventually(() => {
    const { operator, tenant } = alerts.totals;
    expect(receiver.received).toHaveLength(operator.delivered + tenant.delivered);
    expect(operator.delivered).toBe(asked - operator.dropped);
  });
};
let asked = 0;
beforeEach(() => {
  asked = 0;
});
const fall = (groupId: string, account: string, urls: readonly string[] = []): void => {
  asked += 1;
  alerts.send(alertOf(urls, { groupId, account }));
};

it('a group sends ten alerts a minute, with the same body to every destination; further alerts are dropped and counted', async () => {
  for (let n = 0; n < 25; n += 1) fall('g', 'a', [url('tenant')]);
  await settled();
  expect(receiver.received.filter(({ path }) => path === '/operator')).toHaveLength(10);
  expect(receiver.received.filter(({ path }) => path === '/tenant')).toHaveLength(10);
  expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
  expect(alerts.dropped).toEqual({ group: 15, account: 0, 'host-of-account': 0, host: 0, slots: 0 });
  expect(alerts.totals.tenant.dropped).toBe(15);
  // The log has one line per destination for dropped alerts, not one line per alert.
  expect(log.lines.filter(({ outcome }) => outcome === 'dropped')).toHaveLength(2);
  await clock.advance(60_999);
  fall('g', 'a');
  expect(alerts.dropped.group).toBe(16);
  await clock.advance(1);
  fall('g', 'a');
  await settled();
  expect(receiver.received).toHaveLength(21);
});

it('an account sends thirty alerts a minute across its groups, without affecting other accounts', async () => {
  for (let n = 0; n < 100; n += 1) fall(`g${n}`, 'a');
  fall('h', 'b');
  await settled();
  expect(receiver.received).toHaveLength(31);
  expect(alerts.dropped.account).toBe(70);
});

it('an account sends sixty posts a minute to one host; posts to the operator are exempt', async () => {
  for (let n = 0; n < 10; n += 1) {
    fall(
      `g${n}`,
      'a',
      Array.from({ length: 10 }, (_, at) => url(`${n}-${at}`)),
    );
  }
  fall('h', 'b', [url('b')]);
  await settled();
  expect(alerts.dropped['host-of-account']).toBe(40);
  expect(alerts.totals.tenant.delivered).toBe(61);
  expect(alerts.totals.operator.delivered).toBe(11);
});

it('all accounts together send six hundred posts a minute to one host', async () => {
  for (let n = 0; n < 21; n += 1) {
    for (let at = 0; at < 10; at += 1)
      fall(
        `g${n}`,
        `account ${n}`,
        [1, 2, 3].map((k) => url(`${n}-${at}-${k}`)),
      );
    await settled();
  }
  expect(alerts.totals.tenant.delivered).toBe(600);
  expect(alerts.dropped.host).toBe(30);
  expect(alerts.totals.operator.delivered).toBe(210);
});

it('an alert without a destination uses up no budget', async () => {
  const silent = senderOf({ clock, rates: undefined });
  for (let n = 0; n < 50; n += 1) silent.send(alertOf([]));
  expect(silent.dropped.group).toBe(0);
});
