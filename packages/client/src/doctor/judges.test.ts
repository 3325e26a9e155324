import { describe, expect, it } from 'vitest';
import {
  judgeCarriers,
  judgeDns,
  judgeKey,
  judgeProxy,
  judgeTcp,
  judgeTls,
  type TlsFacts,
} from './judge-path.rules.ts';
import { judgeBandwidth, judgeLatency, judgeNat, judgeUdp } from './judge-quality.rules.ts';
import { judgeClock, judgeConfig, judgeKeyFile, judgePlatform, judgeTargets } from './judge-settings.rules.ts';

const SECURED: TlsFacts = {
  state: 'secured',
  version: 'TLSv1.3',
  alpn: 'tunnel/1',
  issuer: 'Example CA',
  daysLeft: 60,
  verified: true,
  edgeIssuer: null,
};

describe('the verdict of the doctor', () => {
  it.each([
    [59_999, 'ok'],
    [-59_999, 'ok'],
    [60_000, 'warn'],
    [-299_999, 'warn'],
    [300_000, 'fail'],
    [-600_000, 'fail'],
    [null, 'skip'],
  ])('for a clock that is %s ms ahead is %s', (aheadMs, status) => {
    expect(judgeClock({ aheadMs }).status).toBe(status);
  });

  it('for a wrong clock names the difference and its direction', () => {
    expect(judgeClock({ aheadMs: -600_000 }).detail).toBe('this computer is 10 min behind the server');
    expect(judgeClock({ aheadMs: 61_000 }).detail).toBe('this computer is 61 s ahead of the server');
  });

  it('for a key file is a warning if other users can read the file', () => {
    const facts = { state: 'found', source: 'the file /k', file: '/k' } as const;
    expect(judgeKeyFile({ ...facts, mode: 0o100600 }).status).toBe('ok');
    expect(judgeKeyFile({ ...facts, mode: 0o100640 })).toMatchObject({ status: 'warn', hint: 'chmod 600 /k' });
    expect(judgeKeyFile({ state: 'missing' }).status).toBe('fail');
  });

  it('for a config file is ok if absent or valid, and a failure if invalid', () => {
    expect(judgeConfig({ state: 'absent', file: '/c' }).status).toBe('ok');
    expect(judgeConfig({ state: 'read', file: '/c', tunnels: 1 }).detail).toBe('/c, 1 tunnel');
    expect(judgeConfig({ state: 'invalid', file: '/c', problem: 'line 3' })).toMatchObject({
      status: 'fail',
      detail: 'line 3',
    });
  });

  it('for proxy, host name and port passes on the problem that was found', () => {
    const problem = { message: 'no', hint: 'do' };
    expect(judgeProxy({ state: 'none', why: 'none is set' }).status).toBe('skip');
    expect(judgeProxy({ state: 'failed', problem })).toEqual({
      status: 'fail',
      detail: 'no',
      hint: 'do',
    });
    expect(judgeDns({ state: 'by-proxy' }).status).toBe('skip');
    expect(judgeDns({ state: 'failed', host: 'h', reason: 'host not found' })).toMatchObject({
      status: 'fail',
      detail: 'h: host not found',
    });
    expect(judgeDns({ state: 'resolved', host: 'h', addresses: ['1', '2', '3', '4'], ms: 1.4 }).detail).toBe(
      'h is 1, 2, 3 and 1 more, 1 ms',
    );
    expect(judgeTcp({ state: 'failed', server: 'h:1', reason: 'connection refused' }).detail).toBe(
      'h:1: connection refused',
    );
  });

  it('for a certificate warns about early expiry, missing verification and interception', () => {
    expect(judgeTls(SECURED).status).toBe('ok');
    expect(judgeTls({ ...SECURED, daysLeft: 13 }).status).toBe('warn');
    expect(judgeTls({ ...SECURED, verified: false }).status).toBe('warn');
    expect(judgeTls({ ...SECURED, edgeIssuer: 'Example CA' }).status).toBe('ok');
    expect(judgeTls({ ...SECURED, edgeIssuer: 'Other CA' })).toMatchObject({ status: 'warn' });
    expect(judgeTls({ ...SECURED, edgeIssuer: 'Other CA' }).detail).toContain('TLS is intercepted');
    expect(judgeTls({ state: 'clear', toThisMachine: true }).status).toBe('skip');
    expect(judgeTls({ state: 'clear', toThisMachine: false }).status).toBe('warn');
  });

  it('for a key lists region and capabilities, and for carriers depends on how many opened', () => {
    expect(judgeKey({ state: 'accepted', region: 'local', capabilities: ['datagram'] }).detail).toBe(
      'accepted, region local, offers datagram',
    );
    expect(judgeCarriers({ wanted: 4, opened: 4, problem: '' }).status).toBe('ok');
    expect(judgeCarriers({ wanted: 4, opened: 2, problem: 'x' }).status).toBe('warn');
    expect(judgeCarriers({ wanted: 4, opened: 0, problem: 'x' }).status).toBe('fail');
  });

  it('for latency depends on the median, while the detail shows the worst value', () => {
    expect(judgeLatency({ control: [1, 900, 2], carrier: [3] })).toEqual({
      status: 'ok',
      detail: 'control 2.0 ms, worst 900 ms, carrier 3.0 ms, worst 3.0 ms',
      hint: '',
    });
    expect(judgeLatency({ control: [300], carrier: [1] }).status).toBe('warn');
    expect(judgeLatency({ control: [], carrier: [] }).status).toBe('warn');
  });

  it('for bandwidth is a warning when one direction is slow or the measurement failed', () => {
    const fast = { bytes: 8 * 1024 * 1024, ms: 1000 };
    expect(judgeBandwidth({ state: 'measured', down: fast, up: fast })).toMatchObject({
      status: 'ok',
      detail: '67 Mbit/s down, 67 Mbit/s up',
    });
    expect(judgeBandwidth({ state: 'measured', down: fast, up: { bytes: 100_000, ms: 3000 } }).status).toBe('warn');
    expect(judgeBandwidth({ state: 'not-wanted' }).status).toBe('skip');
    expect(judgeBandwidth({ state: 'failed', reason: 'cut off' }).status).toBe('warn');
  });

  it('for UDP is a warning as soon as one packet gets no response', () => {
    expect(judgeUdp({ state: 'not-offered', why: 'the edge has no UDP port' }).status).toBe('skip');
    expect(judgeUdp({ state: 'asked', sent: 5, answered: 5 }).status).toBe('ok');
    expect(judgeUdp({ state: 'asked', sent: 5, answered: 4 }).status).toBe('warn');
    expect(judgeUdp({ state: 'asked', sent: 5, answered: 0 }).status).toBe('warn');
    expect(judgeNat({ seen: ['a:1', 'a:1'], isOwn: true }).detail).toBe('no NAT: a:1');
    expect(judgeNat({ seen: ['a:1', 'a:1'], isOwn: false })).toMatchObject({ status: 'ok' });
    expect(judgeNat({ seen: ['a:1', 'a:2'], isOwn: false })).toMatchObject({ status: 'warn' });
    expect(judgeNat({ seen: ['a:1', null], isOwn: false }).status).toBe('warn');
    expect(judgeNat({ seen: [null, null], isOwn: false }).status).toBe('skip');
  });

  it('for services and the account fails if a service refuses connections', () => {
    expect(judgeTargets([]).status).toBe('skip');
    expect(judgeTargets([{ name: 'web', target: '127.0.0.1:1', problem: null }]).status).toBe('ok');
    expect(
      judgeTargets([
        { name: 'web', target: '127.0.0.1:1', problem: null },
        { name: 'db', target: '127.0.0.1:2', problem: 'connection refused' },
      ]),
    ).toMatchObject({ status: 'fail', detail: 'db 127.0.0.1:2: connection refused' });
    expect(judgePlatform({ state: 'no-login' }).status).toBe('skip');
    expect(judgePlatform({ state: 'away', url: 'u', problem: 'no answer' }).status).toBe('warn');
  });
});
