import { Secret } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { Webhook } from 'standardwebhooks';
import { expect, it } from 'vitest';
import { composeAlert } from './alert-message.ts';
import { alertOf, memoryLog, type Received, senderOf, startReceiver } from './alerts.fixture.ts';

const received = async (secret: string): Promise<{ requests: readonly Received[]; log: string }> => {
  const receiver = await startReceiver();
  const log = memoryLog();
  const base = `http://127.0.0.1:${receiver.port}`;
  const alerts = senderOf({ secret: new Secret(secret), operatorUrl: `${base}/op`, logger: log.logger });
  alerts.send(alertOf([`${base}/tenant`], { groupName: 'Größe ✓' }));
  await eventually(() => expect(log.lines).toHaveLength(2));
  await receiver.close();
  return { requests: receiver.received, log: log.text };
};

const headersOf = ({ headers }: Received): Record<string, string> => headers as Record<string, string>;

it('the Standard Webhooks library accepts alerts signed with a whsec_ secret', async () => {
  const secret = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`;
  const { requests, log } = await received(secret);
  for (const request of requests) {
    expect(new Webhook(secret).verify(request.body, headersOf(request))).toMatchObject({ group_name: 'Größe ✓' });
    expect(() => new Webhook(secret).verify(`${request.body} `, headersOf(request))).toThrow();
  }
  const ids = requests.map(({ headers }) => headers['webhook-id']);
  expect(ids[0]).toMatch(/^msg_[A-Za-z0-9]{20}$/);
  expect(ids).toEqual([ids[0], ids[0]]);
  expect(log).not.toContain(secret);
});

it('a secret without the whsec_ prefix is used as raw bytes', async () => {
  const { requests } = await received('open sesame ✓');
  const webhook = new Webhook(Buffer.from('open sesame ✓'), { format: 'raw' });
  for (const request of requests) expect(() => webhook.verify(request.body, headersOf(request))).not.toThrow();
});

it('without a secret, alerts have no signature headers', async () => {
  const { requests } = await received('');
  for (const request of requests) {
    expect(Object.keys(request.headers).filter((name) => name.startsWith('webhook-'))).toEqual([]);
  }
});

it('the signature equals a vector from openssl dgst -sha256 -hmac', () => {
  const stamp = { id: 'msg_1', now: 1_794_722_400_999, secret: new Secret('key'), userAgent: 'x', regionId: 'r' };
  const { headers, body } = composeAlert(alertOf([]), stamp);
  expect(headers['webhook-timestamp']).toBe('1794722400');
  expect(body.toString()).toContain('"at":"2026-11-15T06:00:00.000+00:00"');
  expect(headers['webhook-signature']).toBe('v1,f2RxAUxIJv3e7eKxHCqVA04QQ1ubSbSqpIOxNsrCOxA=');
});

it.each([
  ['whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=', 'v1,qRj6vulqQCwhqezwKNL+bOvUXpC0yGN1mH48YbNfMfg='],
  ['whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY', 'v1,qRj6vulqQCwhqezwKNL+bOvUXpC0yGN1mH48YbNfMfg='],
  ['whsec_-_-_-_8', 'v1,ygEReepCduW55gqlJfn6pkCiUzx59e9l2Jm9gnajPvk='],
  ['whsec_', 'v1,54dWRzsmWL3IM+bG6jkxrr5SpUNzTLo09/ycusiUuBc='],
  ['whsec_not base64!', 'v1,jyqrqRXcB4+DkDP8EOveAXs8MRSfMigr0v3es4Ldf98='],
  ['whsec_A', undefined],
  ['open sesame ✓', 'v1,5nMdetiMIA9XNrYG/Y/AzfI7sztEsesz8wpDqGxf5wM='],
  ['k'.repeat(100), 'v1,rMqWtE9FLa5SHJDN/2jYHbHbNEDF2hvBec17th6UwHE='],
])('signatures of a non-ASCII body equal vectors from node:crypto for every form of secret', (secret, signature) => {
  const stamp = { id: 'msg_1', now: 1_794_722_400_999, secret: new Secret(secret), userAgent: 'x', regionId: 'r' };
  const { headers } = composeAlert(alertOf([], { groupName: 'Größe ✓' }), stamp);
  expect(headers['webhook-signature']).toBe(signature);
});
