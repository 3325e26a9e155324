// What belongs together and what does not, whichever way it is found out.
import { generateKeyPairSync } from 'node:crypto';
import { expect, it } from 'vitest';
import { makeCertificate, makeShortKey } from './made-certificate.fixture.ts';
import { findPairProblem } from './pair-check.ts';

const one = makeCertificate('one.example');
const two = makeCertificate('two.example');

const damaged = (pem: Buffer, at: number): Buffer => {
  const bytes = Buffer.from(pem);
  bytes[at] = bytes[at] === 0x41 ? 0x42 : 0x41;
  return bytes;
};

it('takes the usual pair, with a chain behind its leaf and whatever stands between', () => {
  expect(findPairProblem(one)).toBeNull();
  expect(findPairProblem({ ...one, cert: Buffer.concat([one.cert, Buffer.from('\n'), two.cert]) })).toBeNull();
  expect(findPairProblem({ ...one, cert: Buffer.concat([Buffer.from('# of one\r\n'), one.cert]) })).toBeNull();
});

it('takes keys of every other kind that fit', () => {
  expect(findPairProblem(makeShortKey())).toBeNull();
});

it('refuses the key of another, also where the other is the second of the chain', () => {
  const text = 'the private key does not match the certificate';
  expect(findPairProblem({ cert: one.cert, key: two.key })).toBe(text);
  expect(findPairProblem({ cert: Buffer.concat([one.cert, two.cert]), key: two.key })).toBe(text);
  const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const key = Buffer.from(rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }));
  expect(findPairProblem({ cert: one.cert, key })).toBe(text);
});

it('refuses what is neither, or cut off', () => {
  for (const nothing of ['', 'no PEM', '-----BEGIN CERTIFICATE-----\n', '-----BEGIN PRIVATE KEY-----\nAAAA\n']) {
    expect(findPairProblem({ ...one, cert: Buffer.from(nothing) })).not.toBeNull();
    expect(findPairProblem({ ...one, key: Buffer.from(nothing) })).not.toBeNull();
  }
  for (let length = 0; length < one.cert.length - 30; length += 7)
    expect(findPairProblem({ ...one, cert: one.cert.subarray(0, length) })).not.toBeNull();
  for (let length = 0; length < one.key.length - 30; length += 7)
    expect(findPairProblem({ ...one, key: one.key.subarray(0, length) })).not.toBeNull();
});

it('refuses a certificate that ends before its public key, or whose key reaches beyond its fields', () => {
  const element = (tag: number, ...content: Buffer[]): Buffer => {
    const body = Buffer.concat(content);
    return Buffer.concat([Buffer.of(tag, body.length), body]);
  };
  const fields = [0xa0, 0x02, 0x30, 0x30, 0x30, 0x30].map((tag) => element(tag));
  const pem = (der: Buffer): Buffer =>
    Buffer.from(`-----BEGIN CERTIFICATE-----\n${der.toString('base64')}\n-----END CERTIFICATE-----\n`);
  const cut = element(0x30, element(0x30, ...fields));
  const beyond = element(0x30, element(0x30, ...fields, Buffer.of(0x30, 2)), Buffer.of(0, 0));
  for (const der of [cut, beyond]) expect(findPairProblem({ ...one, cert: pem(der) })).not.toBeNull();
});

it('throws at nothing, whichever byte is another', () => {
  const certificate = one.cert.length;
  const key = one.key.length;
  for (let at = 0; at < certificate; at += 3) findPairProblem({ ...one, cert: damaged(one.cert, at) });
  const numbers = { from: 28 + Math.ceil(36 / 3) * 4, to: 28 + Math.floor((36 + 32) / 3) * 4 };
  for (let at = 0; at < key; at += 3) {
    const problem = findPairProblem({ ...one, key: damaged(one.key, at) });
    if (at >= numbers.from && at < numbers.to && one.key[at] !== 10) expect(problem).not.toBeNull();
  }
});
