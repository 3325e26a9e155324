import { systemClock } from '@tunnel/runtime';
import { type DnsServer, startDnsServer } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkDnsRecords } from '../../../../apps/platform/src/services/domains/check-dns-records.ts';
import { type DomainName } from '../domains/domain-names.rules.ts';
import { judgeProof } from '../domains/domain-proof.rules.ts';
import { DnsLookups } from './lookups.ts';

const SERVER = 'tunnels.example.com';
const A = 'aaaaaaaaaaaaaaaaaaaa';
const B = 'bbbbbbbbbbbbbbbbbbbb';
const SHOP: DomainName = { name: 'shop.test', host: 'shop.test', wildcard: false };
const WILD: DomainName = { name: '*.shop.test', host: 'shop.test', wildcard: true };
const never = (): boolean => false;

let dns: DnsServer;
let lookups: DnsLookups;

beforeEach(async () => {
  dns = await startDnsServer();
  lookups = new DnsLookups({ resolvers: [dns.address], clock: systemClock });
});

afterEach(async () => {
  lookups.close();
  await dns.close();
});

const look = (domain: DomainName) => checkDnsRecords(lookups, domain, { serverDomain: SERVER, randomLabel: 'r4nd0m' });

const NO_ANSWER = { kind: 'no-answer', reason: expect.any(String) };

describe('a DNS lookup', () => {
  it('joins the strings of TXT records, keeps their case, and leaves out oversized and surplus values', async () => {
    const many = Array.from({ length: 150 }, (_, index) => `text-${index}`);
    dns.set('split.test', 'TXT', ['tunnel-', '', 'Verify=', 'X'], 'v=spf1 -all');
    dns.set('huge.test', 'TXT', 'x'.repeat(40_000), 'small');
    dns.set('many.test', 'TXT', ...many);
    expect(await lookups.texts('Split.TEST')).toEqual({ kind: 'found', values: ['tunnel-Verify=X', 'v=spf1 -all'] });
    expect(await lookups.texts('huge.test')).toEqual({ kind: 'found', values: ['small'] });
    dns.set('only-huge.test', 'TXT', 'x'.repeat(40_000));
    expect(await lookups.texts('only-huge.test')).toEqual({ kind: 'absent' });
    expect(await lookups.texts('many.test')).toEqual({ kind: 'found', values: many.slice(0, 100) });
  });

  it('follows at most eight CNAMEs, ends in a loop, and stops at the requested target', async () => {
    for (let step = 0; step < 12; step += 1) dns.set(`c${step}.test`, 'CNAME', `C${step + 1}.test`);
    dns.set('loop.test', 'CNAME', 'pool.test');
    dns.set('pool.test', 'CNAME', 'LOOP.test');
    dns.set('self.test', 'CNAME', 'self.test');
    const chain = await lookups.chain('c0.test', never);
    expect(chain).toEqual({ kind: 'found', values: [1, 2, 3, 4, 5, 6, 7, 8].map((step) => `C${step}.test`) });
    expect(await lookups.chain('c0.test', (name) => name === 'C2.test')).toMatchObject({
      values: ['C1.test', 'C2.test'],
    });
    expect(await lookups.chain('loop.test', never)).toMatchObject({ values: ['pool.test', 'LOOP.test'] });
    expect(await lookups.chain('self.test', never)).toMatchObject({ values: ['self.test'] });
    expect(await lookups.chain('none.test', never)).toEqual({ kind: 'absent' });
  });

  it('distinguishes an absent record from no answer', async () => {
    dns.set('shop.test', 'A', '192.0.2.1');
    expect(await lookups.texts('none.test')).toEqual({ kind: 'absent' });
    expect(await lookups.texts('shop.test')).toEqual({ kind: 'absent' });
    expect(await lookups.texts(`${'a.'.repeat(200)}test`)).toEqual({ kind: 'absent' });
    expect(await lookups.texts(`${'a'.repeat(64)}.test`)).toEqual({ kind: 'absent' });
    for (const fault of ['servfail', 'refused', 'truncated'] as const) {
      dns.fail('shop.test', fault);
      expect(await lookups.texts('shop.test'), fault).toEqual(NO_ANSWER);
      expect(await lookups.chain('shop.test', never), fault).toEqual(NO_ANSWER);
      expect(await lookups.addresses('shop.test'), fault).toEqual(NO_ANSWER);
    }
    expect(await lookups.addresses('none.test')).toEqual({ kind: 'absent' });
    dns.set('next.test', 'CNAME', 'shop.test');
    // The second lookup of the chain gets no answer, so the whole chain has no answer.
    expect(await lookups.chain('next.test', never)).toEqual(NO_ANSWER);
  });

  it('gets no answer from silent, slow or misbehaving servers, or after it is closed', async () => {
    const impatient = new DnsLookups({ resolvers: [dns.address], clock: systemClock, timeoutMs: 250 });
    dns.set('slow.test', 'TXT', 'late');
    dns.fail('slow.test', { slowMs: 30_000 });
    dns.fail('silent.test', 'silent');
    dns.fail('garbage.test', 'garbage');
    dns.fail('other.test', 'other-id');
    const names = ['slow.test', 'silent.test', 'garbage.test', 'other.test'];
    const begun = performance.now();
    const answers = await Promise.all(names.map((name) => impatient.texts(name)));
    expect(answers).toEqual(names.map(() => NO_ANSWER));
    expect(performance.now() - begun).toBeLessThan(8_000);
    const open = impatient.texts('silent.test');
    impatient.close();
    expect(await open).toEqual(NO_ANSWER);
    expect(await impatient.texts('slow.test')).toEqual({ kind: 'no-answer', reason: 'the server is stopping' });
  });

  it('waits its full timeout for a slow name, even after fast answers and garbage for other names', async () => {
    for (let at = 0; at < 15; at += 1) await lookups.texts(`fast${at}.test`);
    dns.set('far.test', 'TXT', 'late');
    // A resolver that adapts its timeout to fast answers would wait only one second.
    dns.fail('far.test', { slowMs: 1100 });
    dns.fail('garbage.test', 'garbage');
    const [far] = await Promise.all([lookups.texts('far.test'), lookups.texts('garbage.test')]);
    expect(far).toEqual({ kind: 'found', values: ['late'] });
  });

  it('refuses a resolver that is not an address', () => {
    expect(() => new DnsLookups({ resolvers: ['nowhere'], clock: systemClock })).toThrow('nowhere');
  });

  it('finds IPv4 and IPv6 addresses', async () => {
    dns.set('shop.test', 'A', '192.0.2.1');
    dns.set('shop.test', 'AAAA', '2001:db8::1');
    expect(await lookups.addresses('shop.test')).toEqual({ kind: 'found', values: ['192.0.2.1', '2001:db8::1'] });
  });

  it('keeps its pace, and refuses lookups that do not fit in its queue', async () => {
    const kinds = Array.from({ length: 230 }, async (_, index) => (await lookups.texts(`n${index}.test`)).kind);
    expect(await Promise.all(kinds.slice(0, 20))).toEqual(Array.from({ length: 20 }, () => 'absent'));
    expect(await Promise.all(kinds.slice(220))).toEqual(Array.from({ length: 10 }, () => 'no-answer'));
    expect(dns.asked.length).toBeLessThanOrEqual(45);
  });
});

describe('a DNS check of a domain', () => {
  it('finds the token in a CNAME, without queries for addresses or the zone', async () => {
    dns.set('shop.test', 'CNAME', 'alias.test');
    dns.set('alias.test', 'CNAME', `${A.toUpperCase()}.TUNNELS.example.com`);
    dns.set(`${A}.${SERVER}`, 'CNAME', 'elsewhere.test');
    const { findings, isApex, problem, answers } = await look(SHOP);
    expect([findings, isApex, problem]).toEqual([{ tokens: [A], complete: true }, false, null]);
    expect(answers.chain).toMatchObject({
      kind: 'found',
      values: ['alias.test', `${A.toUpperCase()}.TUNNELS.example.com`],
    });
    expect(new Set(dns.asked.map(({ type }) => type))).toEqual(new Set(['CNAME', 'TXT']));
    expect(dns.asked.map(({ name }) => name)).not.toContain(`${A}.${SERVER}`);
  });

  it('finds the token in the eighth CNAME, not in the ninth', async () => {
    for (let step = 1; step <= 8; step += 1) dns.set(`c${step}.test`, 'CNAME', `c${step + 1}.test`);
    dns.set('c9.test', 'CNAME', `${A}.${SERVER}`);
    dns.set('shop.test', 'CNAME', 'c3.test');
    expect((await look(SHOP)).findings).toEqual({ tokens: [A], complete: true });
    dns.set('shop.test', 'CNAME', 'c2.test');
    expect((await look(SHOP)).findings).toEqual({ tokens: [], complete: true });
  });

  it('finds the token in a TXT record at the apex of a zone; an address is no proof', async () => {
    dns.set('shop.test', 'A', '192.0.2.1');
    dns.set('shop.test', 'SOA', 'ns1.test');
    expect((await look(SHOP)).findings).toEqual({ tokens: [], complete: true });
    dns.set(
      '_tunnel.shop.test',
      'TXT',
      [`TUNNEL-verify=${A.slice(0, 5)}`, A.slice(5).toUpperCase()],
      `tunnel-verify=${B}`,
    );
    const seen = await look(SHOP);
    expect([seen.findings, seen.isApex]).toEqual([{ tokens: [A, B], complete: true }, true]);
    expect(seen.answers.addresses).toEqual({ kind: 'found', values: ['192.0.2.1'] });
  });

  it('queries a random label below a wildcard, and its challenge record', async () => {
    dns.set('one.shop.test', 'CNAME', `${A}.${SERVER}`);
    expect((await look(WILD)).findings.tokens).toEqual([]);
    dns.set('*.shop.test', 'CNAME', `${A}.${SERVER}`);
    dns.set('_acme-challenge.shop.test', 'CNAME', `${A}._acme-challenge.${SERVER}`);
    const { findings, answers } = await look(WILD);
    expect(findings.tokens).toEqual([A]);
    expect(answers.challenge).toEqual({ kind: 'found', values: [`${A}._acme-challenge.${SERVER}`] });
  });

  it('is inconclusive for other tokens if only a part of the lookups is answered', async () => {
    dns.set('_tunnel.shop.test', 'TXT', `tunnel-verify=${B}`);
    dns.fail('shop.test', 'servfail');
    const { findings, isApex, problem } = await look(SHOP);
    expect([judgeProof(A, findings), judgeProof(B, findings), isApex, problem]).toEqual([
      'no-answer',
      'found',
      null,
      'ESERVFAIL',
    ]);
  });
});
