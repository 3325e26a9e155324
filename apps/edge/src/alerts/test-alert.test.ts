import { loadServerConfig } from '@tunnel/config/server';
import { systemClock } from '@tunnel/runtime';
import { eventually, FakeClock, freePort } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { EDGE_LIMITS } from '../limits.ts';
import { type Receiver, startReceiver } from './alerts.fixture.ts';
import { sendTestAlert } from './test-alert.ts';

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0)) await end();
});

const receiver = async (options?: Parameters<typeof startReceiver>[0]): Promise<Receiver> => {
  const made = await startReceiver(options);
  endings.push(() => made.close());
  return made;
};

const configOf = (alert_webhook_url: string, alert_secret = '') =>
  loadServerConfig({ env: {}, overrides: { load_balancing: { alert_webhook_url, alert_secret } } });
const send = (port: number, clock = systemClock, secret = '') =>
  sendTestAlert(configOf(`http://127.0.0.1:${port}/s3cret`, secret), { clock, version: '1.2.3' });

it('a test alert has the form and signature of a real alert', async () => {
  const { port, received } = await receiver();
  const end = await send(port, systemClock, 'a secret');
  expect(end).toMatchObject({ host: `127.0.0.1:${port}`, outcome: 'delivered', status: 204, reason: null });
  expect(received).toHaveLength(1);
  expect(received[0]).toMatchObject({ method: 'POST', path: '/s3cret' });
  expect(received[0]?.headers).toMatchObject({ 'user-agent': 'tunnel-edge/1.2.3' });
  expect(received[0]?.headers['webhook-signature']).toMatch(/^v1,/);
  expect(JSON.parse(received[0]?.body ?? '')).toMatchObject({
    event: 'group_zero_healthy',
    region_id: 'local',
    protocol: 'http',
    label: 'alert-test',
    group_name: 'alert test',
    key_hash_short: '00000000',
    member_count: 0,
  });
});

it('a test alert reports the status of a receiver that refused it', async () => {
  const { port } = await receiver({ answer: (_request, response) => response.writeHead(500).end() });
  expect(await send(port)).toMatchObject({ outcome: 'refused-status', status: 500 });
});

it('a test alert reports a refused connection', async () => {
  expect(await send(await freePort())).toMatchObject({ outcome: 'failed', status: null, reason: 'ECONNREFUSED' });
});

it('a test alert reports a receiver that did not respond in time', async () => {
  const { port, received } = await receiver({ answer: () => {} });
  const clock = new FakeClock();
  const ended = send(port, clock);
  await eventually(() => expect(received).toHaveLength(1));
  await clock.advance(EDGE_LIMITS.ALERT_TIMEOUT_MS);
  expect(await ended).toMatchObject({ outcome: 'timeout', reason: 'no response within 5 s' });
});

it('a test alert without a configured URL fails with CONFIG_NO_ALERT_URL', async () => {
  await expect(sendTestAlert(configOf(''), { clock: systemClock, version: '' })).rejects.toMatchObject({
    code: 'CONFIG_NO_ALERT_URL',
  });
});
