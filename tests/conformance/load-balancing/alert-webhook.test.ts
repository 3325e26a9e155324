// The alert group_zero_healthy: the fields of its body, its destinations and its delivery.
import { eventually, FastClock, startTcpServer } from '@tunnel/testkit';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, itWith } from '../../system/in-process.fixture.ts';
import { fresh, GroupEdge, REGION, sha256 } from './group-edge.fixture.ts';
import { memberRequest, RawControl, type Registered } from './raw-control.fixture.ts';
import { row } from './rows.fixture.ts';
import { type Alert, WebhookReceiver } from './webhook-receiver.fixture.ts';

const SECRET = `whsec_${Buffer.from('a secret of thirty-two bytes....').toString('base64')}`;
const TIMEOUT_MS = 5000;

const clock = new FastClock(4);
const it = itWith({ clock });
const shared = new Harness({ clock });
let edge: GroupEdge;
let operator: WebhookReceiver;
/** Alerts of an http group and of a tcp group, as the operator's webhook received them. */
let web: Alert;
let db: Alert;
let dbMember: Registered;
const webGroup = fresh('web');
const dbGroup = fresh('db');

beforeAll(async () => {
  operator = await WebhookReceiver.start(shared);
  edge = await GroupEdge.start(shared, { lines: `alert_webhook_url = "${operator.url('/operator')}"` });
  const raw = await RawControl.enter(shared, edge);
  const member = await raw.join(memberRequest('The web pool', { subdomain: webGroup, key: 'web key' }));
  await raw.join(memberRequest('The web pool', { subdomain: webGroup, key: 'web key' }));
  await goDown(raw, member);
  dbMember = await raw.join(memberRequest(dbGroup, { protocol: 'tcp' }));
  await goDown(raw, dbMember);
  [web] = (await operator.until('The web pool', 1)) as [Alert];
  [db] = (await operator.until(dbGroup, 1)) as [Alert];
});
afterAll(() => shared.close());

const goDown = async (raw: RawControl, member: Registered): Promise<void> => {
  await raw.healthy(member);
  await raw.unhealthy(member);
};

const withHook = (group: string, url: string) =>
  memberRequest(group, { health_check: { type: 'tcp', alert_webhook: url } });

describe.concurrent('Alert webhook', () => {
  it(row('Alert webhook', 1), () => {
    expect([web.body['event'], db.body['event']]).toEqual(['group_zero_healthy', 'group_zero_healthy']);
    expect([web.method, web.headers['content-type']]).toEqual(['POST', expect.stringMatching(/^application\/json/)]);
  });
  it(row('Alert webhook', 2), () => expect(web.body['region_id']).toBe(REGION));
  it(row('Alert webhook', 3), () => expect([web.body['protocol'], db.body['protocol']]).toEqual(['http', 'tcp']));
  it(row('Alert webhook', 4), () => {
    expect([web.body['label'], db.body['label']]).toEqual([webGroup, String(dbMember.assigned_port)]);
  });
  it(row('Alert webhook', 5), () => expect(web.body['group_name']).toBe('The web pool'));
  it(row('Alert webhook', 6), () => expect(web.body['key_hash_short']).toBe(sha256('web key').slice(0, 8)));
  it(row('Alert webhook', 7), () => expect([web.body['member_count'], db.body['member_count']]).toEqual([2, 1]));
  it(row('Alert webhook', 8), () => {
    const at = String(web.body['at']);
    expect(at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?[+-]\d\d:\d\d$/);
    expect(Math.abs(clock.now() - Date.parse(at))).toBeLessThan(60_000);
    const fields = 'event region_id protocol label group_name key_hash_short member_count at';
    expect(Object.keys(web.body).sort()).toEqual(fields.split(' ').sort());
  });
});

describe.concurrent('Alert webhook rules', () => {
  it(row('Alert webhook rules', 1), async ({ harness }) => {
    const group = fresh();
    const one = await WebhookReceiver.start(harness);
    const two = await WebhookReceiver.start(harness);
    const alice = await RawControl.enter(harness, edge);
    const bob = await RawControl.enter(harness, edge, 'bob');
    // Two members share a URL; the other members have a different path, a different host, and the operator's URL.
    const member = await alice.join(withHook(group, one.url('/a')));
    for (const url of [one.url('/a'), one.url('/b'), two.url('/a'), operator.url('/operator')]) {
      await bob.join(withHook(group, url));
    }
    await goDown(alice, member);
    const sent = [...(await one.until(group, 2)), ...(await two.until(group, 1)), ...(await operator.until(group, 1))];
    expect(sent.map(({ path }) => String(path)).sort()).toEqual(['/a', '/a', '/b', '/operator']);
    // All destinations get the same body.
    expect(new Set(sent.map(({ text }) => text)).size).toBe(1);
    await goDown(alice, member);
    await Promise.all([one.until(group, 4), two.until(group, 2), operator.until(group, 2)]);
    expect([one.of(group).length, two.of(group).length, operator.of(group).length]).toEqual([4, 2, 2]);
  });

  it(row('Alert webhook rules', 2), async ({ harness }) => {
    const group = fresh();
    const receiver = await WebhookReceiver.start(harness);
    const raw = await RawControl.enter(harness, edge);
    const members = [await raw.join(withHook(group, receiver.url())), await raw.join(withHook(group, receiver.url()))];
    const [one, two] = members as [Registered, Registered];
    for (let edges = 1; edges <= 5; edges += 1) {
      await raw.healthy(one);
      await raw.healthy(two);
      await raw.unhealthy(two);
      await raw.unhealthy(one);
      for (const member of [one, two, one, two]) await raw.unhealthy(member);
      await receiver.until(group, edges);
    }
    expect(receiver.of(group)).toHaveLength(5);
    expect(operator.of(group)).toHaveLength(5);
  });

  it(row('Alert webhook rules', 3), async ({ harness }) => {
    const group = fresh();
    const silent = await WebhookReceiver.start(harness, () => {});
    const failing = await WebhookReceiver.start(harness, (_, response) => void response.writeHead(500).end());
    let resets = 0;
    const resetting = harness.use(
      await startTcpServer((socket) => {
        resets += 1;
        socket.resetAndDestroy();
      }),
    );
    const raw = await RawControl.enter(harness, edge);
    const member = await raw.join(withHook(group, silent.url()));
    await raw.join(withHook(group, failing.url()));
    await raw.join(withHook(group, `http://127.0.0.1:${resetting.port}/`));
    await goDown(raw, member);
    await Promise.all([silent.until(group, 1), failing.until(group, 1), operator.until(group, 1)]);
    // The edge handles frames while a receiver does not answer, and sends the next alert.
    for (let frames = 0; frames < 20; frames += 1) await raw.settle();
    await goDown(raw, member);
    expect(silent.lifetimesMs).toEqual([]);
    await Promise.all([silent.until(group, 2), failing.until(group, 2), operator.until(group, 2)]);
    await eventually(() => expect(silent.lifetimesMs).toHaveLength(2), { timeoutMs: TIMEOUT_MS * 6 });
    // Failed deliveries are not retried: each receiver got one connection per alert.
    expect([silent.connections, failing.connections, resets]).toEqual([2, 2, 2]);
  });

  it(row('Limits', 3), async ({ harness }) => {
    const group = fresh();
    const silent = await WebhookReceiver.start(harness, () => {});
    const raw = await RawControl.enter(harness, edge);
    const member = await raw.join(withHook(group, silent.url()));
    // Measured from before the alert: on a busy machine the receiver accepts the connection late.
    const since = clock.monotonic();
    await goDown(raw, member);
    await eventually(() => expect(silent.lifetimesMs).toHaveLength(1), { timeoutMs: TIMEOUT_MS * 6 });
    const [lasted = 0] = silent.lifetimesMs;
    expect(clock.monotonic() - since).toBeGreaterThan(TIMEOUT_MS - 50);
    expect(lasted).toBeLessThan(TIMEOUT_MS * 3);
    await raw.settle();
    expect(silent.connections).toBe(1);
  });

  it(row('Alert webhook rules', 4), async ({ harness }) => {
    expect(Object.keys(web.headers).filter((name) => /^webhook-|authorization|signature/.test(name))).toEqual([]);
    const receiver = await WebhookReceiver.start(harness);
    const signing = await GroupEdge.start(harness, { lines: `alert_secret = "${SECRET}"` });
    const group = fresh();
    const raw = await RawControl.enter(harness, signing);
    await goDown(raw, await raw.join(withHook(group, receiver.url())));
    const [{ text, headers }] = (await receiver.until(group, 1)) as [Alert];
    expect(new Webhook(SECRET).verify(text, headers as Record<string, string>)).toMatchObject({ group_name: group });
    expect(() => new Webhook(SECRET).verify(`${text} `, headers as Record<string, string>)).toThrow();
  });
});
