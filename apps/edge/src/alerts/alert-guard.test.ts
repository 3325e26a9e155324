// The guard against private addresses, tested over real sockets and through the whole sender, with a receiver on this machine.
import { eventually, startTcpServer, type TcpServer } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { alertOf, memoryLog, senderOf, startReceiver } from './alerts.fixture.ts';

let inside: TcpServer;
beforeEach(async () => {
  inside = await startTcpServer((socket) => void socket.resume());
});
afterEach(() => inside.close());

it.each([
  ...[
    'localhost',
    'localhost.',
    'x.localhost',
    'LOCALHOST',
    '127.0.0.1',
    '127.0.0.1.',
    '127.1',
    '0x7f.1',
    '0x7f000001',
  ],
  ...[
    '2130706433',
    '0177.0.0.1',
    '0',
    '0.0.0.0',
    '１２７.0.0.1',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::]',
  ],
])('no connection is made to http://%s while private addresses are not allowed', async (host) => {
  const log = memoryLog();
  const alerts = senderOf({ allowPrivate: false, logger: log.logger });
  alerts.send(alertOf([`http://${host}:${inside.port}/s3cret?s3cret`]));
  await eventually(() => expect(log.lines).toMatchObject([{ outcome: 'guard-refused' }]));
  expect(alerts.totals.tenant['guard-refused']).toBe(1);
  expect(inside.totalConnections).toBe(0);
  expect(log.text).not.toContain('s3cret');
});

it('a hostname with one public and one private address is refused, in either order', async () => {
  for (const addresses of [
    ['93.184.216.34', '127.0.0.1'],
    ['127.0.0.1', '93.184.216.34'],
  ]) {
    const alerts = senderOf({ allowPrivate: false, lookup: () => Promise.resolve(addresses) });
    alerts.send(alertOf([`http://hooks.example:${inside.port}/`]));
    await eventually(() => expect(alerts.totals.tenant['guard-refused']).toBe(1));
  }
  expect(inside.totalConnections).toBe(0);
});

it('a hostname is resolved once per alert, so later DNS responses (DNS rebinding) have no effect', async () => {
  const receiver = await startReceiver();
  const answers = [['127.0.0.1'], ['127.0.0.99'], ['127.0.0.99']];
  let asked = 0;
  const lookup = () => Promise.resolve(answers[asked++] ?? []);
  const alerts = senderOf({ lookup });
  alerts.send(alertOf([`http://rebind.example:${receiver.port}/`]));
  await eventually(() => expect(alerts.totals.tenant.delivered).toBe(1));
  expect(asked).toBe(1);
  expect(receiver.received[0]?.headers.host).toBe(`rebind.example:${receiver.port}`);
  await receiver.close();
});

it('a hostname with a public address at registration and a private address at the alert is refused', async () => {
  const answers = [['93.184.216.34'], ['127.0.0.1']];
  let asked = 0;
  const alerts = senderOf({ allowPrivate: false, lookup: () => Promise.resolve(answers[asked++] ?? []) });
  const url = `http://rebind.example:${inside.port}/`;
  expect(await alerts.urls.checkAtRegistration(url)).toBeNull();
  alerts.send(alertOf([url]));
  await eventually(() => expect(alerts.totals.tenant['guard-refused']).toBe(1));
  expect(inside.totalConnections).toBe(0);
});

it('localhost and addresses of this machine are reached if private addresses are allowed', async () => {
  const receiver = await startReceiver();
  const alerts = senderOf({ allowPrivate: true });
  const { port } = receiver;
  alerts.send(alertOf([`http://localhost:${port}/1`, `http://x.localhost:${port}/2`, `http://127.0.0.1:${port}/3`]));
  await eventually(() => expect(alerts.totals.tenant.delivered).toBe(3));
  await receiver.close();
});

it('metadata addresses are refused even if private addresses are allowed', () => {
  const alerts = senderOf({ allowPrivate: true });
  alerts.send(alertOf(['http://169.254.169.254/latest', 'http://[fd00:ec2::254]/', 'http://100.100.100.200/']));
  expect(alerts.totals.tenant['guard-refused']).toBe(3);
});
