import packet, { type Answer, type Packet } from 'dns-packet';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { answerQuery } from './answer-query.ts';
import { ChallengeZone } from './challenge-zone.ts';

const ORIGIN = '_acme-challenge.tunnels.test';
const OPT: Answer = {
  type: 'OPT',
  name: '.',
  udpPayloadSize: 4096,
  extendedRcode: 0,
  ednsVersion: 0,
  flags: 0,
  flag_do: false,
  options: [],
};

const zoneWith = (...records: readonly (readonly [string, string])[]): ChallengeZone => {
  const zone = new ChallengeZone('Tunnels.test', 7);
  for (const [name, value] of records) zone.set(name, value);
  return zone;
};

const query = (name: string, type: string, more: Partial<Packet> = {}): Buffer =>
  packet.encode({ type: 'query', id: 4711, questions: [{ name, type } as never], ...more });

const ask = (zone: ChallengeZone, bytes: Buffer, over: 'udp' | 'tcp' = 'udp') => {
  const outcome = answerQuery(bytes, zone, over);
  if (outcome.kind === 'malformed') throw new Error('it was taken for no question');
  const { id, type, flags = 0, answers, authorities, additionals, questions, ...rest } = packet.decode(outcome.bytes);
  const texts = answers?.flatMap((answer) => (answer.type === 'TXT' ? [String(answer.data)] : []));
  return {
    kind: outcome.kind,
    id,
    type,
    rcode: flags & 15,
    texts,
    bytes: outcome.bytes.length,
    answers,
    authorities,
    additionals,
    questions,
    flag_aa: rest.flag_aa,
    flag_tc: rest.flag_tc,
    flag_ra: rest.flag_ra,
  };
};

describe('a DNS query', () => {
  it('for a TXT record in the zone gets an authoritative answer with a TTL of 1 s, in the case of the query', () => {
    const zone = zoneWith([ORIGIN, 'one'], [ORIGIN, 'two'], [`Token.${ORIGIN}`, 'three']);
    expect(ask(zone, query(ORIGIN, 'TXT'))).toMatchObject({
      kind: 'answered',
      id: 4711,
      type: 'response',
      rcode: 0,
      texts: ['one', 'two'],
      flag_aa: true,
      flag_tc: false,
      flag_ra: false,
      authorities: [],
      additionals: [],
    });
    const odd = `toKEN._ACME-challenge.Tunnels.TEST`;
    const answer = ask(zone, query(odd, 'TXT'));
    expect(answer).toMatchObject({ texts: ['three'], questions: [{ name: odd }] });
    expect(answer.answers).toMatchObject([{ name: odd, ttl: 1, class: 'IN' }]);
  });

  it('for SOA or NS of the zone is answered; for other types and names it gets no records, and the SOA', () => {
    const zone = zoneWith([ORIGIN, 'one']);
    expect(ask(zone, query(ORIGIN, 'SOA')).answers).toMatchObject([
      { type: 'SOA', data: { mname: 'tunnels.test', rname: 'hostmaster.tunnels.test', serial: 8, minimum: 1 } },
    ]);
    expect(ask(zone, query(ORIGIN, 'NS')).answers).toMatchObject([{ type: 'NS', data: 'tunnels.test' }]);
    const empty = [
      ...(['A', 'AAAA', 'CNAME', 'CAA', 'ANY', 'AXFR', 'DNSKEY'] as const).map((type) => [ORIGIN, type] as const),
      ...(['TXT', 'SOA', 'NS'] as const).map((type) => [`none.${ORIGIN}`, type] as const),
    ];
    for (const [name, type] of empty) {
      expect(ask(zone, query(name, type)), `${name} ${type}`).toMatchObject({
        kind: 'answered',
        rcode: 0,
        answers: [],
        authorities: [{ type: 'SOA', name: ORIGIN, ttl: 1 }],
      });
    }
  });

  it('gets a short answer with compressed names, and without SOA under load', () => {
    const zone = zoneWith([ORIGIN, 'x'.repeat(43)]);
    const none = query(`none.${ORIGIN}`, 'TXT', { additionals: [OPT] });
    expect(ask(zone, none).bytes).toBeLessThan(2.7 * none.length);
    const pressed = answerQuery(none, zone, 'udp', true);
    expect(pressed.kind === 'answered' && pressed.bytes.length).toBe(none.length);
    const text = query(ORIGIN, 'TXT');
    expect(ask(zone, text).bytes).toBe(text.length + 2 + 10 + 44);
    expect(ask(zone, text).answers).toMatchObject([{ name: ORIGIN, type: 'TXT' }]);
  });

  it('outside of the zone, of another class or of another kind is refused', () => {
    const zone = zoneWith([ORIGIN, 'one']);
    for (const name of ['tunnels.test', 'test', '.', `x${ORIGIN}`, 'tunnels.test.evil', 'google.com']) {
      expect(ask(zone, query(name, 'TXT')), name).toMatchObject({
        kind: 'refused',
        rcode: 5,
        answers: [],
        authorities: [],
      });
    }
    const chaos = query(ORIGIN, 'TXT', { questions: [{ name: ORIGIN, type: 'TXT', class: 'CH' }] });
    expect(ask(zone, chaos)).toMatchObject({ kind: 'refused', rcode: 5 });
    const update = query(ORIGIN, 'SOA', { flags: 5 << 11 });
    expect(ask(zone, update)).toMatchObject({ kind: 'refused', rcode: 4 });
  });

  it('with EDNS is answered with EDNS, and an unknown EDNS version is refused', () => {
    const zone = zoneWith([ORIGIN, 'one']);
    expect(ask(zone, query(ORIGIN, 'TXT', { additionals: [OPT] }))).toMatchObject({
      texts: ['one'],
      additionals: [{ type: 'OPT', ednsVersion: 0, extendedRcode: 0, udpPayloadSize: 512 }],
    });
    const later = query(ORIGIN, 'TXT', { additionals: [{ ...OPT, ednsVersion: 1 }] });
    expect(ask(zone, later)).toMatchObject({ kind: 'refused', answers: [], additionals: [{ extendedRcode: 1 }] });
  });

  it('with an answer above 512 bytes gets a truncated answer over UDP, even if it announces a larger size', () => {
    const zone = zoneWith(...Array.from({ length: 20 }, (_, at) => [ORIGIN, `${at}`.padStart(43, 'x')] as const));
    const bytes = query(ORIGIN, 'TXT', { additionals: [OPT] });
    expect(ask(zone, bytes)).toMatchObject({ kind: 'answered', flag_tc: true, answers: [] });
    expect(ask(zone, bytes, 'tcp')).toMatchObject({ flag_tc: false, texts: { length: 20 } });
  });
});

describe('a malformed DNS query', () => {
  const zone = zoneWith([ORIGIN, 'one']);
  const good = query(ORIGIN, 'TXT');
  const changed = (change: (bytes: Buffer) => void, bytes = good): Buffer => {
    const copy = Buffer.from(bytes);
    change(copy);
    return copy;
  };

  it('is dropped: a response, several questions, unexpected records, or an unprintable name', () => {
    const bad: Record<string, Buffer> = {
      empty: Buffer.alloc(0),
      short: good.subarray(0, 11),
      response: changed((bytes) => bytes.writeUInt16BE(0x8000, 2)),
      'no question': changed((bytes) => bytes.writeUInt16BE(0, 4)),
      'two questions': packet.encode({
        type: 'query',
        questions: [1, 2].map(() => ({ name: ORIGIN, type: 'TXT' as const })),
      }),
      'an answer': packet.encode({
        type: 'query',
        questions: [{ name: ORIGIN, type: 'TXT' }],
        answers: [{ name: 'a', type: 'A', data: '192.0.2.1' }],
      }),
      'many additionals': changed((bytes) => bytes.writeUInt16BE(65_535, 10)),
      'a pointer to itself': changed((bytes) => bytes.writeUInt16BE(0xc00c, 12)),
      'a label beyond the end': changed((bytes) => bytes.writeUInt8(63, 12)),
      'a label of another kind': changed((bytes) => bytes.writeUInt8(0x80, 12)),
      'bytes that are no text': changed((bytes) => bytes.writeUInt8(0xff, 13)),
      'a class of nobody': changed((bytes) => bytes.writeUInt16BE(77, bytes.length - 2)),
      'too long': Buffer.concat([good, Buffer.alloc(5000)]),
    };
    for (const [title, bytes] of Object.entries(bad))
      expect(answerQuery(bytes, zone, 'udp').kind, title).toBe('malformed');
    for (let length = 0; length < good.length; length += 1) {
      expect(answerQuery(good.subarray(0, length), zone, 'udp').kind).toBe('malformed');
    }
  });

  it('of random bytes never throws, is answered with at most 512 bytes, and an answer is never answered', () => {
    const withOpt = query(`token.${ORIGIN}`, 'TXT', { additionals: [OPT] });
    const damaged = fc
      .tuple(
        fc.constantFrom(good, withOpt),
        fc.array(fc.tuple(fc.nat({ max: 80 }), fc.nat({ max: 255 })), { maxLength: 6 }),
      )
      .map(([bytes, changes]) =>
        changed((copy) => {
          for (const [at, byte] of changes) copy[at % copy.length] = byte;
        }, bytes),
      );
    const any = fc.uint8Array({ maxLength: 700 }).map((bytes) => Buffer.from(bytes));
    const headed = any.map((bytes) => Buffer.concat([good.subarray(0, 12), bytes]));
    fc.assert(
      fc.property(fc.oneof({ weight: 4, arbitrary: damaged }, headed, any), (bytes) => {
        const outcome = answerQuery(bytes, zone, 'udp');
        if (outcome.kind === 'malformed') return;
        expect(outcome.bytes.length).toBeLessThanOrEqual(512);
        const answer = packet.decode(outcome.bytes);
        expect([answer.type, answer.id]).toEqual(['response', bytes.readUInt16BE(0)]);
        // The answer is so small that sending it to a spoofed address gains an attacker nothing.
        expect(outcome.bytes.length).toBeLessThanOrEqual(bytes.length + 200);
        expect(answerQuery(outcome.bytes, zone, 'udp').kind).toBe('malformed');
      }),
      { numRuns: 3000 },
    );
  });
});

describe('the zone of challenge records', () => {
  it('holds at most 1000 records, and refuses names outside of it', () => {
    const zone = zoneWith();
    for (let at = 0; at < 1000; at += 1) zone.set(`t${at}.${ORIGIN}`, 'v');
    expect(() => zone.set(ORIGIN, 'v')).toThrow('limit of 1000 DNS challenge records reached');
    zone.set(`t1.${ORIGIN}`, 'v');
    zone.clear(`t1.${ORIGIN}`, 'v');
    zone.set(ORIGIN, 'v');
    expect(() => zone.set('_acme-challenge.shop.test', 'v')).toThrow(
      `_acme-challenge.shop.test is outside the server's DNS zone ${ORIGIN}`,
    );
  });
});
