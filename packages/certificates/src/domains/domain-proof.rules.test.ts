import { describe, expect, it } from 'vitest';
import {
  type DnsAnswer,
  extractTokens,
  isOwnTarget,
  judgeProof,
  type ProofAnswers,
  proofQuestions,
  proofToken,
} from './domain-proof.rules.ts';
import { checkToStore, type RecordFacts, recordsOf } from './domain-records.rules.ts';

const DOMAIN = 'tunnels.example.com';
const A = 'aaaaaaaaaaaaaaaaaaaa';
const B = 'bbbbbbbbbbbbbbbbbbbb';
const found = (...values: string[]): DnsAnswer => ({ kind: 'found', values });
const ABSENT: DnsAnswer = { kind: 'absent' };
const NO_ANSWER: DnsAnswer = { kind: 'no-answer', reason: 'ESERVFAIL' };
const NOTHING: ProofAnswers = { chain: ABSENT, texts: ABSENT, addresses: ABSENT, challenge: ABSENT };
const look = (answers: Partial<ProofAnswers>) => extractTokens({ ...NOTHING, ...answers }, DOMAIN);

describe('the token of a domain', () => {
  it('has 20 characters from a-z2-7, and each of its 100 bits changes the token', () => {
    expect(proofToken(new Uint8Array(13))).toBe('aaaaaaaaaaaaaaaaaaaa');
    expect(proofToken(new Uint8Array(13).fill(255))).toBe('77777777777777777777');
    expect(proofToken(Uint8Array.from({ length: 13 }, (_, at) => at * 19))).toMatch(/^[a-z2-7]{20}$/);
    const seen = Array.from({ length: 100 }, (_, bit) => {
      const bytes = new Uint8Array(13);
      bytes[bit >> 3] = 128 >> (bit & 7);
      return proofToken(bytes);
    });
    expect(new Set(seen).size).toBe(100);
  });
});

describe('the proof of a domain', () => {
  it('is a CNAME that points to the token, directly or through other names, in any case', () => {
    expect(look({ chain: found(`${A}.${DOMAIN}`) })).toEqual({ tokens: [A], complete: true });
    expect(
      look({ chain: found('www.shop.test', 'cdn.test', `${A.toUpperCase()}.Tunnels.Example.COM.`) }).tokens,
    ).toEqual([A]);
    // CNAMEs behind the token's name belong to the operator's own setup, and are ignored.
    expect(look({ chain: found(`${A}.${DOMAIN}`, `lb.${DOMAIN}`, `${B}.${DOMAIN}`) }).tokens).toEqual([A]);
  });

  it("is not given by a CNAME to the edge, to a tunnel's name or to a lookalike", () => {
    for (const target of [
      DOMAIN,
      `shop.${DOMAIN}`,
      `${A}x.${DOMAIN}`,
      `${A}.x.${DOMAIN}`,
      `${A}.${DOMAIN}.evil.test`,
      `${A}.evil-${DOMAIN}`,
    ]) {
      expect(look({ chain: found(target) }), target).toEqual({ tokens: [], complete: true });
    }
    expect(look({ addresses: found('192.0.2.1') })).toEqual({ tokens: [], complete: true });
  });

  it('is a TXT record among other records, also for several accounts', () => {
    expect(
      look({ texts: found('v=spf1 -all', `tunnel-verify=${A}`, ` "TUNNEL-VERIFY=${B.toUpperCase()}" `) }).tokens,
    ).toEqual([A, B]);
    expect(look({ texts: found(A, `tunnel-verify=${A}b`, 'tunnel-verify=', `x tunnel-verify=${A}`) }).tokens).toEqual(
      [],
    );
    expect(look({ texts: found(`tunnel-verify=${A}`), chain: found(`${A}.${DOMAIN}`) }).tokens).toEqual([A]);
  });

  it('does not count as absent while a lookup has no answer', () => {
    for (const answers of [{ chain: NO_ANSWER }, { texts: NO_ANSWER }, { chain: NO_ANSWER, texts: NO_ANSWER }]) {
      expect(judgeProof(A, look(answers))).toBe('no-answer');
    }
    expect(judgeProof(A, look({}))).toBe('absent');
    // A found token counts even if another lookup failed; the tokens of other accounts stay undecided.
    const half = look({ chain: NO_ANSWER, texts: found(`tunnel-verify=${A}`) });
    expect([judgeProof(A, half), judgeProof(B, half)]).toEqual(['found', 'no-answer']);
    // Address and challenge lookups prove nothing, so their failure leaves nothing undecided.
    expect(judgeProof(A, look({ addresses: NO_ANSWER, challenge: NO_ANSWER }))).toBe('absent');
  });

  it('is looked up at the name itself, or for a wildcard at a random label below it', () => {
    const shop = { name: 'shop.test', host: 'shop.test', wildcard: false };
    expect(proofQuestions(shop, 'r4nd')).toEqual({ route: 'shop.test', text: '_tunnel.shop.test', challenge: null });
    expect(proofQuestions({ ...shop, name: '*.shop.test', wildcard: true }, 'r4nd')).toEqual({
      route: 'r4nd.shop.test',
      text: '_tunnel.shop.test',
      challenge: '_acme-challenge.shop.test',
    });
  });

  it("stops at names of the server's own domain", () => {
    expect([
      isOwnTarget(`X.${DOMAIN}.`, DOMAIN),
      isOwnTarget(DOMAIN, DOMAIN),
      isOwnTarget(`x${DOMAIN}`, DOMAIN),
    ]).toEqual([true, true, false]);
  });
});

describe('the DNS records to set', () => {
  const FACTS: RecordFacts = {
    token: A,
    domain: DOMAIN,
    edgeAddresses: ['192.0.2.1', '2001:db8::1'],
    isApex: null,
    wantsChallenge: true,
  };
  const sub = { name: 'www.shop.test', host: 'www.shop.test', wildcard: false };
  const apex = { name: 'shop.test', host: 'shop.test', wildcard: false };
  const wild = { name: '*.shop.test', host: 'shop.test', wildcard: true };
  const CNAME = { type: 'CNAME', name: 'www.shop.test', value: `${A}.${DOMAIN}`, purpose: 'proof' };

  it('are a single CNAME where it is possible', () => {
    expect(recordsOf(sub, FACTS, null)).toEqual([{ ...CNAME, found: false }]);
    const answers = { ...NOTHING, chain: found(`${A.toUpperCase()}.${DOMAIN}`) };
    expect(recordsOf(sub, { ...FACTS, isApex: false }, answers)).toEqual([{ ...CNAME, found: true }]);
    // A CNAME to another account's token does not count as found.
    expect(recordsOf(sub, FACTS, { ...NOTHING, chain: found(`${B}.${DOMAIN}`) })).toEqual([{ ...CNAME, found: false }]);
  });

  it('are addresses and a TXT record at the apex of a zone, or if the owner chose so', () => {
    const answers = { ...NOTHING, addresses: found('192.0.2.1', '198.51.100.7'), texts: found(`tunnel-verify=${A}`) };
    const rows = (name: string, address: boolean, text: boolean) => [
      { type: 'A', name, value: '192.0.2.1', purpose: 'route', found: address },
      { type: 'AAAA', name, value: '2001:db8::1', purpose: 'route', found: false },
      { type: 'TXT', name: `_tunnel.${name}`, value: `tunnel-verify=${A}`, purpose: 'proof', found: text },
    ];
    expect(recordsOf(apex, FACTS, null)).toEqual(rows('shop.test', false, false));
    expect(recordsOf(apex, FACTS, answers)).toEqual(rows('shop.test', true, true));
    expect(recordsOf(sub, { ...FACTS, isApex: true }, NOTHING)).toEqual(rows('www.shop.test', false, false));
    expect(recordsOf(sub, { ...FACTS, isApex: false }, answers)).toEqual(rows('www.shop.test', true, true));
    // A name with two labels can lack a zone: for example, a name below a privately run public suffix.
    expect(recordsOf(apex, { ...FACTS, isApex: false }, NOTHING)[0]?.type).toBe('CNAME');
  });

  it('include the challenge CNAME of a wildcard where the server can get its certificate', () => {
    const challenge = {
      type: 'CNAME',
      name: '_acme-challenge.shop.test',
      value: `${A}._acme-challenge.${DOMAIN}`,
      purpose: 'challenge',
    };
    const route = { ...CNAME, name: '*.shop.test' };
    expect(recordsOf(wild, FACTS, null)).toEqual([
      { ...route, found: false },
      { ...challenge, found: false },
    ]);
    const answers = { ...NOTHING, chain: found(`${A}.${DOMAIN}`), challenge: found(`${A}._ACME-challenge.${DOMAIN}`) };
    expect(recordsOf(wild, FACTS, answers)).toEqual([
      { ...route, found: true },
      { ...challenge, found: true },
    ]);
    // The wildcard record also answers for the challenge name, but does not count as the challenge record.
    const synthesised = { ...answers, challenge: found(`${A}.${DOMAIN}`) };
    expect(recordsOf(wild, FACTS, synthesised)[1]).toEqual({ ...challenge, found: false });
    expect(recordsOf(wild, { ...FACTS, wantsChallenge: false }, answers)).toEqual([{ ...route, found: true }]);
  });

  it('look the same from the stored part of a check, which stays small for any amount of records', () => {
    const noise = Array.from({ length: 5000 }, (_, at) => `other-${at}`.padEnd(1000, 'x'));
    const answers = {
      chain: found(...noise, `${A.toUpperCase()}.${DOMAIN}.`),
      texts: found(...noise, `"tunnel-verify=${A}"`, `tunnel-verify=${B}`),
      addresses: found(...Array.from({ length: 100 }, (_, at) => `192.0.2.${at}`)),
      challenge: found(...noise, `${A}._acme-challenge.${DOMAIN}`),
    };
    const kept = checkToStore({ answers, isApex: false }, FACTS, null);
    expect(JSON.stringify(kept).length).toBeLessThan(1000);
    for (const domain of [sub, apex, wild]) {
      expect(recordsOf(domain, FACTS, kept.answers)).toEqual(recordsOf(domain, FACTS, answers));
    }
  });

  it('keep their last result if a check got no answer', () => {
    const first = checkToStore(
      { answers: { ...NOTHING, texts: found(`tunnel-verify=${A}`) }, isApex: true },
      FACTS,
      null,
    );
    const failed = { chain: NO_ANSWER, texts: NO_ANSWER, addresses: NO_ANSWER, challenge: NO_ANSWER };
    expect(checkToStore({ answers: failed, isApex: null }, FACTS, first)).toEqual(first);
    expect(checkToStore({ answers: failed, isApex: null }, FACTS, null)).toEqual({ answers: NOTHING, isApex: null });
    expect(checkToStore({ answers: NOTHING, isApex: false }, FACTS, first)).toEqual({
      answers: NOTHING,
      isApex: false,
    });
  });
});
