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
  it('is shown for each of its URLs once the alert has ended', () => {
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

  it('has a common outcome for all URLs without a separate outcome', () => {
    const last = new LastAlerts();
    const tell = last.begin(GROUP, AT);
    tell(['a'], 'delivered');
    tell(null, 'dropped');
    expect([last.of(GROUP, to('a'))?.outcome, last.of(GROUP, to('b'))?.outcome]).toEqual(['delivered', 'dropped']);
  });

  it('is not shown for a member that joined later, even with the same URL', () => {
    const last = new LastAlerts();
    const tell = last.begin(GROUP, AT);
    tell(['a'], 'delivered');
    tell(null, 'dropped');
    expect([last.of(GROUP, to('a', AT + 1)), last.of(GROUP, to('b', AT + 1))]).toEqual([null, null]);
  });

  it('is replaced by the next alert, and a late outcome of the replaced alert is ignored', () => {
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
  ] as const)('does not reveal the receiver’s response: %s is shown as %s', (outcome, shown) => {
    const last = new LastAlerts();
    last.begin(GROUP, AT)(['a'], outcome);
    expect(last.of(GROUP, to('a'))?.outcome).toBe(shown);
  });
});

describe('the outcome reported by the alert sender', () => {
  const endings: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of endings.splice(0)) await end();
  });
  const sender = (rest?: Parameters<typeof senderOf>[0]): AlertSender => {
    const made = senderOf(rest);
    endings.push(() => made.close());
    return made;
  };

  it('covers every spelling of a URL, including the operator’s URL', async () => {
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

  it('covers all URLs at once if the whole alert exceeds its budget', () => {
    const last = new LastAlerts();
    const rates = { perGroup: 1, perAccount: 1e9, perHostOfAccount: 1e9, perHost: 1e9 };
    const alerts = sender({ rates });
    const url = 'http://user:x@127.0.0.1/';
    alerts.send(alertOf([url]));
    alerts.send(alertOf([url], { onEnd: last.begin(GROUP, AT) }));
    expect(last.of(GROUP, to(url))?.outcome).toBe('dropped');
  });
});
