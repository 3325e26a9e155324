import { DnsLookups } from '@tunnel/certificates/dns';
import { systemClock } from '@tunnel/runtime';
import { type DnsServer, eventually, FakeClock, startDnsServer } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { judgeRecord, type RecordFacts, wantedRecords } from './dns-records.ts';
import { RecordsWatch, termsLine } from './records-watch.ts';

const FACTS: RecordFacts = {
  domain: 'tunnels.example.com',
  host: 'tunnels.example.com',
  hasResponder: true,
  publicAddresses: [],
  randomLabel: 'r4nd0m',
};

describe('the DNS records of an installation', () => {
  it('are the domain, its wildcard, the ACME challenge if answered here, and a platform host elsewhere', () => {
    const namesOf = (facts: Partial<RecordFacts>) =>
      wantedRecords({ ...FACTS, ...facts }).map(({ name, type, value }) => [name, type, value]);
    expect(namesOf({ publicAddresses: ['198.51.100.7'] })).toEqual([
      ['tunnels.example.com', 'A', '198.51.100.7'],
      ['*.tunnels.example.com', 'A', '198.51.100.7'],
      ['_acme-challenge.tunnels.example.com', 'NS', 'tunnels.example.com'],
    ]);
    expect(namesOf({ hasResponder: false, host: 'console.tunnels.example.com' })).toHaveLength(2);
    expect(namesOf({ hasResponder: false, host: 'console.example.net' })[2]).toEqual([
      'console.example.net',
      'A',
      null,
    ]);
    // A DNS record cannot point to an IP address or to localhost.
    for (const host of ['localhost', '127.0.0.1', '203.0.113.7', '[2606:4700::1]']) {
      expect(namesOf({ hasResponder: false, host })).toHaveLength(2);
    }
  });

  it("count as found with any address, except private ones when this machine's public address is known", () => {
    const [record] = wantedRecords(FACTS);
    if (record === undefined) throw new Error('there is one');
    const judge = (values: string[], publicAddresses: string[] = []) =>
      judgeRecord(record, { kind: 'found', values }, publicAddresses);
    expect(judge(['1.2.3.4', '2606:4700::1'])).toEqual({ kind: 'found', shown: '1.2.3.4, 2606:4700::1' });
    expect(judge(['10.0.0.1']).kind).toBe('found');
    expect(judge(['127.0.0.1'], ['1.2.3.4'])).toEqual({
      kind: 'missing',
      reason: '127.0.0.1 is not reachable from the internet',
    });
    expect(judge(['10.0.0.1', '1.2.3.4'], ['1.2.3.5']).kind).toBe('found');
    expect(judgeRecord(record, { kind: 'absent' }, [])).toEqual({ kind: 'missing', reason: '' });
    expect(judgeRecord(record, { kind: 'no-answer', reason: 'ETIMEOUT' }, [])).toMatchObject({
      kind: 'missing',
      reason: 'no response: ETIMEOUT',
    });
  });
});

describe('the watch for DNS records', () => {
  let dns: DnsServer;
  beforeEach(async () => {
    dns = await startDnsServer();
  });
  afterEach(() => dns.close());

  it('prints all records at the start, then each new record once, and stops when all are found', async () => {
    const clock = new FakeClock();
    const lookups = new DnsLookups({ resolvers: [dns.address], clock: systemClock });
    let said = '';
    const write = (text: string): void => {
      said += text;
    };
    dns.set('tunnels.example.com', 'A', '1.2.3.4');
    const watch = new RecordsWatch({ facts: FACTS, lookups, clock, write, terms: async () => 'terms: none\n' });
    await watch.start();
    expect(said).toMatch(/ {2}tunnels\.example\.com +A\/AAAA +this machine's public address +found 1\.2\.3\.4\n/);
    expect(said).toMatch(
      / {2}\*\.tunnels\.example\.com +A\/AAAA +this machine's public address +missing +\(for tunnels\)/,
    );
    expect(said).toMatch(/ {2}_acme-challenge\.tunnels\.example\.com +NS +tunnels\.example\.com +missing/);
    expect(said).toContain('terms: none');
    said = '';
    await clock.advance(59_999);
    const asked = dns.asked.length;
    dns.set('*.tunnels.example.com', 'AAAA', '2606:4700::1');
    await clock.advance(1);
    await eventually(() => expect(said).toBe('DNS record found: *.tunnels.example.com A/AAAA 2606:4700::1\n'));
    expect(dns.asked.length).toBeGreaterThan(asked);
    await eventually(() => expect(clock.pendingTimers).toBe(1));
    dns.set('_acme-challenge.tunnels.example.com', 'SOA', 'tunnels.example.com');
    said = '';
    await clock.advance(60_000);
    await eventually(() => expect(said).toContain('_acme-challenge.tunnels.example.com NS tunnels.example.com\n'));
    expect(said.split('\n')).toHaveLength(2);
    await eventually(() => expect(clock.pendingTimers).toBe(0));
  });

  it('prints nothing after it is stopped during a lookup', async () => {
    dns.fail('*', 'silent');
    const lookups = new DnsLookups({ resolvers: [dns.address], clock: systemClock });
    let said = '';
    const write = (text: string): void => {
      said += text;
    };
    const watch = new RecordsWatch({ facts: FACTS, lookups, clock: new FakeClock(), write, terms: async () => '' });
    const started = watch.start();
    watch.stop();
    await started;
    expect(said).toBe('');
  });
});

it('terms of service that cannot be read from the CA are reported', async () => {
  const acme = { directory: 'http://127.0.0.1:9/directory', ca_file: '' } as Parameters<typeof termsLine>[0];
  expect(await termsLine(acme)).toMatch(/issued by 127\.0\.0\.1:9\. Its terms of service could not be read: /);
});
