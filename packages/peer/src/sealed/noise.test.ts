import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { derivePsk, NoiseFailure, NoiseHandshake, type NoiseOptions, type NoiseResult } from './noise.ts';
import { LENGTH_BYTES, RecordOpener, RecordSealer } from './record-cipher.ts';

interface Vector {
  readonly init_prologue: string;
  readonly init_psks: readonly [string];
  readonly init_ephemeral: string;
  readonly resp_ephemeral: string;
  readonly handshake_hash: string;
  readonly messages: readonly { readonly payload: string; readonly ciphertext: string }[];
}

const hex = (text: string): Buffer => Buffer.from(text, 'hex');
const PSK = derivePsk('correct horse battery staple', 'office-db');
const PROLOGUE = Buffer.from('tunnel-p2p/1office-db');

const party = (role: NoiseOptions['role'], changes: Partial<NoiseOptions> = {}): NoiseHandshake =>
  new NoiseHandshake({ role, psk: PSK, prologue: PROLOGUE, ...changes });

const shake = (initiator: NoiseHandshake, responder: NoiseHandshake): readonly [NoiseResult, NoiseResult] => {
  responder.read(initiator.write(Buffer.from('first')));
  initiator.read(responder.write(Buffer.from('second')));
  return [initiator.result(), responder.result()];
};

describe('the Noise handshake', () => {
  const { vectors } = JSON.parse(readFileSync(new URL('../../vectors/noise.json', import.meta.url), 'utf8')) as {
    readonly vectors: readonly Vector[];
  };

  it.each(vectors)('produces the bytes of the published vectors in both roles', (vector) => {
    const common = { psk: hex(vector.init_psks[0]), prologue: hex(vector.init_prologue) };
    const initiator = new NoiseHandshake({
      role: 'initiator',
      ephemeral: hex(vector.init_ephemeral),
      ...common,
    } as NoiseOptions);
    const responder = new NoiseHandshake({
      role: 'responder',
      ephemeral: hex(vector.resp_ephemeral),
      ...common,
    } as NoiseOptions);
    const [first, second, ...records] = vector.messages;
    if (first === undefined || second === undefined) throw new Error('a handshake has two messages');
    expect(initiator.write(hex(first.payload)).toString('hex')).toBe(first.ciphertext);
    expect(responder.read(hex(first.ciphertext)).toString('hex')).toBe(first.payload);
    expect(responder.write(hex(second.payload)).toString('hex')).toBe(second.ciphertext);
    expect(initiator.read(hex(second.ciphertext)).toString('hex')).toBe(second.payload);
    const results = [initiator.result(), responder.result()] as const;
    for (const { handshakeHash } of results) expect(handshakeHash.toString('hex')).toBe(vector.handshake_hash);
    const sealers = results.map(({ sendKey }) => new RecordSealer(sendKey));
    const openers = results.map(({ receiveKey }) => new RecordOpener(receiveKey));
    for (const [at, { payload, ciphertext }] of records.entries()) {
      const target = Buffer.alloc(200);
      const end = sealers[at % 2]?.seal(Buffer.alloc(0), hex(payload), 0, payload.length / 2, target, 0) ?? 0;
      expect(target.subarray(LENGTH_BYTES, end).toString('hex')).toBe(ciphertext);
      expect(target.readUInt16BE(0)).toBe(ciphertext.length / 2);
      expect(openers[1 - (at % 2)]?.open(hex(ciphertext), 0, ciphertext.length / 2).toString('hex')).toBe(payload);
    }
  });

  it('ends with equal hashes and crossed keys, which differ for every handshake', () => {
    const [one, two] = shake(party('initiator'), party('responder'));
    expect(one.handshakeHash).toEqual(two.handshakeHash);
    expect(one.sendKey).toEqual(two.receiveKey);
    expect(one.receiveKey).toEqual(two.sendKey);
    expect(one.sendKey).not.toEqual(one.receiveKey);
    const [again] = shake(party('initiator'), party('responder'));
    expect(again.handshakeHash).not.toEqual(one.handshakeHash);
    expect(again.sendKey).not.toEqual(one.sendKey);
  });

  it.each([
    ['another secret', { psk: derivePsk('incorrect horse battery', 'office-db') }],
    ['the same secret for another name', { psk: derivePsk('correct horse battery staple', 'their-db') }],
    ['another prologue', { prologue: Buffer.from('tunnel-p2p/1their-db') }],
  ])('with %s fails at the first message', (_what, changes) => {
    const responder = party('responder', changes);
    expect(() => responder.read(party('initiator').write(Buffer.alloc(0)))).toThrow(NoiseFailure);
  });

  it('rejects a message that was truncated or altered anywhere', () => {
    const first = party('initiator').write(Buffer.from('payload'));
    for (let at = 0; at < first.length; at += 1) {
      const altered = Buffer.from(first);
      altered[at] = (altered[at] ?? 0) ^ 1;
      expect(() => party('responder').read(altered)).toThrow(NoiseFailure);
      expect(() => party('responder').read(first.subarray(0, at))).toThrow(NoiseFailure);
    }
  });

  it('rejects a response to another handshake', () => {
    const initiator = party('initiator');
    const other = party('initiator');
    const responder = party('responder');
    initiator.write(Buffer.alloc(0));
    responder.read(other.write(Buffer.alloc(0)));
    expect(() => initiator.read(responder.write(Buffer.alloc(0)))).toThrow(NoiseFailure);
  });

  it.each([
    '0000000000000000000000000000000000000000000000000000000000000000',
    '0100000000000000000000000000000000000000000000000000000000000000',
    'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800',
    '5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157',
    'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  ])('rejects the low-order point %s', (point) => {
    const initiator = party('initiator');
    initiator.write(Buffer.alloc(0));
    expect(() => initiator.read(Buffer.concat([hex(point), Buffer.alloc(16)]))).toThrow(NoiseFailure);
  });

  it('rejects reads and writes out of turn or after a failure', () => {
    const initiator = party('initiator');
    expect(() => initiator.read(Buffer.alloc(48))).toThrow(NoiseFailure);
    expect(() => initiator.result()).toThrow(NoiseFailure);
    const responder = party('responder');
    expect(() => responder.write(Buffer.alloc(0))).toThrow(NoiseFailure);
    expect(() => responder.read(Buffer.alloc(48))).toThrow(NoiseFailure);
    expect(() => responder.read(party('initiator').write(Buffer.alloc(0)))).toThrow(NoiseFailure);
  });
});

describe('the pre-shared key', () => {
  it('has a fixed value for secret and name, and differs for another name', () => {
    expect(PSK).toHaveLength(32);
    expect(PSK.toString('hex')).toBe('7a5086ccadb4afcab45ed0738e81484101dec6065f4656fa6d894c9a63571044');
    expect(derivePsk('correct horse battery staple', 'b')).not.toEqual(PSK);
  });
});
