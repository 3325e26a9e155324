import { eventually, freePort } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import type { AlertSender } from './alert-sender.ts';
import { alertOf, senderOf, startReceiver } from './alerts.fixture.ts';
import { LastAlerts } from './last-alerts.ts';

const AT = Date.UTC(2030, 0, 1);
const at = new Date(AT).toISOString();
const GROUP = {};
const to = (alertWebhook: string | null, connectedSince = AT) => ({ alertWebhook, connectedSince });

describe('the last alert of a group', () => {
  it('is told for each URL, once it has ended', () => {
    const last = new LastAlerts();
    expect(last.of(GROUP, to('a'))).toBeNull();
    const tell = last.begin(GROUP, AT);
    expect(last.of(GROUP, to('a'))).toBeNull();
    tell(['a', 'A'], 'delivered');
    expect([
      last.of(GROUP, to('a')),
      last.of(GROUP, to('A')),
      last.of(GROUP, to('b')),
      last.of(GROUP, to(null)),
    ]).toEqual([
      ...[
        { at, outcome: 'delivered' },
        { at, outcome: 'delivered' },
      ],
      ...[null, null],
    ]);
    expect(last.of({}, to('a'))).toBeNull();
  });

  it('tells of all others what becomes of them together', () => {
    const last = new LastAlerts();
    const tell = last.begin(GROUP, AT);
    tell(['a'], 'delivered');
    tell(null, 'dropped');
    expect([last.of(GROUP, to('a'))?.outcome, last.of(GROUP, to('b'))?.outcome]).toEqual(['delivered', 'dropped']);
  });

  it('is nothing to a member that came after it, whatever URL it names', () => {
    const last = new LastAlerts();
    const tell = last.begin(GROUP, AT);
    tell(['a'], 'delivered');
    tell(null, 'dropped');
    expect([last.of(GROUP, to('a', AT + 1)), last.of(GROUP, to('b', AT + 1))]).toEqual([null, null]);
  });

  it('is forgotten with the next one, and a late end of the one before changes nothing', () => {
    const last = new LastAlerts();
    const before = last.begin(GROUP, AT);
    before(['a'], 'delivered');
    const tell = last.begin(GROUP, AT + 1000);
    before(['b'], 'delivered');
    expect([last.of(GROUP, to('a')), last.of(GROUP, to('b'))]).toEqual([null, null]);
    tell(['a'], 'timeout');
    expect(last.of(GROUP, to('a'))).toEqual({ at: new Date(AT + 1000).toISOString(), outcome: 'failed' });
  });

  it.each([
    ['refused-status', 'failed'],
    ['timeout', 'failed'],
    ['failed', 'failed'],
    ['guard-refused', 'refused'],
    ['dropped', 'dropped'],
  ] as const)('does not tell what a receiver said: %s is %s', (outcome, shown) => {
    const last = new LastAlerts();
    last.begin(GROUP, AT)(['a'], outcome);
    expect(last.of(GROUP, to('a'))?.outcome).toBe(shown);
  });
});

describe('what a sender tells of its ends', () => {
  const endings: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of endings.splice(0)) await end();
  });
  const sender = (rest?: Parameters<typeof senderOf>[0]): AlertSender => {
    const made = senderOf(rest);
    endings.push(() => made.close());
    return made;
  };

  it('is of every spelling of a URL, also of one that is the operator’s', async () => {
    const { port, close } = await startReceiver();
    endings.push(close);
    const base = `http://127.0.0.1:${port}`;
    const nobody = `http://127.0.0.1:${await freePort()}/`;
    const last = new LastAlerts();
    const urls = [`${base}/a`, `HTTP://127.1:${port}/a#x`, `${base}/op`, nobody, 'http://user:x@127.0.0.1/'];
    sender({ operatorUrl: `${base}/op` }).send(alertOf(urls, { onEnd: last.begin(GROUP, AT) }));
    await eventually(() => {
      expect(urls.map((url) => last.of(GROUP, to(url))?.outcome)).toEqual([
        ...['delivered', 'delivered', 'delivered'],
        ...['failed', 'refused'],
      ]);
    });
  });

  it('is of all at once when the whole alert is over its budget', () => {
    const last = new LastAlerts();
    const rates = { perGroup: 1, perAccount: 1e9, perHostOfAccount: 1e9, perHost: 1e9 };
    const alerts = sender({ rates });
    const url = 'http://user:x@127.0.0.1/';
    alerts.send(alertOf([url]));
    alerts.send(alertOf([url], { onEnd: last.begin(GROUP, AT) }));
    expect(last.of(GROUP, to(url))?.outcome).toBe('dropped');
  });
});
