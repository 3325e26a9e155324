import { describe, expect, it } from 'vitest';
import {
  againLines,
  mailVerdict,
  nextLines,
  type PortFinding,
  portsOfRun,
  portVerdicts,
  type RecordFinding,
  recordVerdict,
} from './checks.rules.ts';

const OWN = ['203.0.113.7'];
const found = (...values: string[]): RecordFinding['answer'] => ({ kind: 'found', values });
const a = (answer: RecordFinding['answer'], own: readonly string[] = OWN, listensOnIpv6 = false) =>
  recordVerdict({ name: 't.test', type: 'A', target: null, answer }, { own, listensOnIpv6 });
const ns = (answer: RecordFinding['answer']) =>
  recordVerdict(
    { name: '_acme-challenge.t.test', type: 'NS', target: 't.test', answer },
    { own: OWN, listensOnIpv6: false },
  );

describe('DNS records', () => {
  it('a record that points to this machine is ok, and a missing record names the value to create', () => {
    expect(a(found('203.0.113.7'))).toEqual({ level: 'ok', text: 'DNS record t.test A/AAAA points to 203.0.113.7' });
    expect(a({ kind: 'absent' })).toEqual({
      level: 'fix',
      text: 'DNS record t.test A/AAAA is missing: at your DNS provider, create the record with the value 203.0.113.7',
    });
    expect(a({ kind: 'absent' }, []).text).toMatch(/the public address of this machine$/);
  });

  it('a record that points elsewhere is reported, but only against addresses of the same family', () => {
    expect(a(found('198.51.100.9'))).toMatchObject({ level: 'fix' });
    expect(a(found('198.51.100.9')).text).toContain('points to 198.51.100.9, but this machine has 203.0.113.7');
    expect(a(found('203.0.113.7', '198.51.100.9')).text).toContain('points to 198.51.100.9, but');
    expect(a(found('198.51.100.9'), ['2001:db8::7']).level).toBe('ok');
    expect(a(found('198.51.100.9'), []).level).toBe('ok');
  });

  it('an AAAA record is reported if this machine has no IPv6 address, or if the server accepts only IPv4', () => {
    const both = found('203.0.113.7', '2001:db8::7');
    expect(a(both)).toMatchObject({ level: 'fix', text: expect.stringContaining('points to 2001:db8::7, but') });
    expect(a(both, [...OWN, '2001:db8::7'])).toEqual({
      level: 'fix',
      text: 'DNS record t.test A/AAAA points to 2001:db8::7, but the server accepts only IPv4: set [server] host = "::", or delete the AAAA record',
    });
    expect(a(both, [...OWN, '2001:db8::7'], true).level).toBe('ok');
    expect(a(both, []).level).toBe('ok');
  });

  it('a resolver that does not respond is reported', () => {
    expect(a({ kind: 'no-answer', reason: 'ETIMEOUT' })).toMatchObject({ level: 'fix' });
  });

  it('the delegation of challenges can be confirmed only by a running server, but its absence is reported', () => {
    expect(ns(found('t.test')).level).toBe('ok');
    expect(ns({ kind: 'no-answer', reason: 'ESERVFAIL' }).level).toBe('note');
    expect(ns({ kind: 'absent' })).toMatchObject({
      level: 'fix',
      text: expect.stringMatching(/with the value t\.test$/),
    });
  });
});

const port = (number: number, problem: string | null, more: Partial<PortFinding> = {}): PortFinding => ({
  key: '[server] http_port',
  host: '0.0.0.0',
  port: number,
  transport: 'TCP',
  problem,
  ...more,
});

describe('ports', () => {
  it('free ports share a line, and so do ports that need a privilege', () => {
    expect(
      portVerdicts(
        [port(4040, null), port(4041, null), port(80, 'EACCES'), port(53, 'EACCES', { transport: 'UDP' })],
        new Set(),
      ),
    ).toEqual([
      { level: 'ok', text: 'free ports: 4040, 4041' },
      {
        level: 'note',
        text: 'ports that need a privilege: 80, 53/udp. `tunnel-server service install` grants the privilege',
      },
    ]);
  });

  it('every port with a problem has a line with the key and the remedy', () => {
    const ports = [
      port(80, 'EADDRINUSE'),
      port(53, 'EADDRINUSE', { transport: 'UDP', key: '[dns] port' }),
      port(8000, 'EADDRNOTAVAIL', { host: '192.0.2.1' }),
      port(8001, 'EAFNOSUPPORT'),
    ];
    const texts = portVerdicts(ports, new Set([443])).map(({ level, text }) => `${level} ${text}`);
    expect(texts).toEqual([
      'fix port 80 (TCP, [server] http_port) is already in use: stop the program that uses the port (`sudo ss -ltnp` lists programs), or change the key',
      'fix port 53 (UDP, [dns] port) is already in use: stop the program that uses the port (`sudo ss -lunp` lists programs), or change the key',
      'fix port 8000 (TCP, [server] http_port): 192.0.2.1 is not an address of this machine: change the host',
      'fix port 8001 (TCP, [server] http_port) cannot be opened: EAFNOSUPPORT',
    ]);
  });
});

it('ports that the running server has opened are ok', () => {
  const run = { pid: 7, http_url: 'http://127.0.0.1:80', metrics_url: 'http://[::1]:9090/metrics', dns: '[::1]:53' };
  const inUse = portsOfRun({ ...run, control: '127.0.0.1:4040', https_url: null, udp_ports: [20_198, 20_199] });
  expect([...inUse]).toEqual([80, 9090, 53, 4040]);
  const ports = [port(80, 'EADDRINUSE'), port(53, 'EADDRINUSE', { transport: 'UDP' }), port(443, 'EADDRINUSE')];
  expect(portVerdicts(ports, inUse).map(({ level, text }) => `${level} ${text.slice(0, 40)}`)).toEqual([
    'ok ports of the running server: 80, 53/udp',
    expect.stringMatching(/^fix port 443 \(TCP/),
  ]);
});

it('a missing mail server is a note, and a mail server that refuses is named with the reason', () => {
  expect(mailVerdict({ host: null, problem: null }).level).toBe('note');
  expect(mailVerdict({ host: 'mail.test:587', problem: null }).level).toBe('ok');
  expect(mailVerdict({ host: 'mail.test:587', problem: 'Invalid login' })).toEqual({
    level: 'fix',
    text: 'mail server mail.test:587: Invalid login: check host, port, user and password of --smtp',
  });
});

it('the command that repeats the checks is shown only if a check needs a change', () => {
  const facts = { file: "/srv/it's.toml", isRoot: false, isDefaultFile: false };
  expect(againLines([{ level: 'note', text: '' }], facts)).toEqual([]);
  expect(againLines([{ level: 'fix', text: '' }], facts).at(-1)).toBe(
    `  tunnel-server setup --recheck --out '/srv/it'\\''s.toml'`,
  );
  expect(againLines([{ level: 'fix', text: '' }], { ...facts, isRoot: true, isDefaultFile: true }).at(-1)).toBe(
    '  sudo tunnel-server setup --recheck',
  );
});

it('the next commands are those that the user of the command can run', () => {
  const file = '/etc/tunnel/server.toml';
  const spaced = nextLines({ file: '/srv/a b.toml', isRoot: false, isDefaultFile: false });
  expect(spaced[1]).toBe("  tunnel-server stack --config '/srv/a b.toml'");
  expect(nextLines({ file, isRoot: true, isDefaultFile: true })[1]).toBe('  sudo tunnel-server service install');
  expect(nextLines({ file: '/srv/a.toml', isRoot: true, isDefaultFile: false })[1]).toBe(
    '  sudo tunnel-server service install --config /srv/a.toml',
  );
  expect(nextLines({ file: '/srv/a.toml', isRoot: false, isDefaultFile: false })[1]).toBe(
    '  tunnel-server stack --config /srv/a.toml',
  );
});
