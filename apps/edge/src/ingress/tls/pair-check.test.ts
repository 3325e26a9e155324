// Pairs of a certificate and a private key that match or do not match, for every way in which the check finds out.
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

it('a matching pair is accepted, also with a chain or with text around the certificates', () => {
  expect(findPairProblem(one)).toBeNull();
  expect(findPairProblem({ ...one, cert: Buffer.concat([one.cert, Buffer.from('\n'), two.cert]) })).toBeNull();
  expect(findPairProblem({ ...one, cert: Buffer.concat([Buffer.from('# of one\r\n'), one.cert]) })).toBeNull();
});

it('a matching pair with an RSA key is accepted', () => {
  expect(findPairProblem(makeShortKey())).toBeNull();
});

it('the key of another certificate is refused, even if that certificate is second in the chain', () => {
  const text = 'the private key does not match the certificate';
  expect(findPairProblem({ cert: one.cert, key: two.key })).toBe(text);
  expect(findPairProblem({ cert: Buffer.concat([one.cert, two.cert]), key: two.key })).toBe(text);
  const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const key = Buffer.from(rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }));
  expect(findPairProblem({ cert: one.cert, key })).toBe(text);
});

it('text without PEM data and truncated certificates or keys are refused', () => {
  for (const nothing of ['', 'no PEM', '-----BEGIN CERTIFICATE-----\n', '-----BEGIN PRIVATE KEY-----\nAAAA\n']) {
    expect(findPairProblem({ ...one, cert: Buffer.from(nothing) })).not.toBeNull();
    expect(findPairProblem({ ...one, key: Buffer.from(nothing) })).not.toBeNull();
  }
  for (let length = 0; length < one.cert.length - 30; length += 7)
    expect(findPairProblem({ ...one, cert: one.cert.subarray(0, length) })).not.toBeNull();
  for (let length = 0; length < one.key.length - 30; length += 7)
    expect(findPairProblem({ ...one, key: one.key.subarray(0, length) })).not.toBeNull();
});

it('a certificate with a missing or overlong public key field is refused', () => {
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

it('a changed byte causes no exception, and a changed private number is refused', () => {
  const certificate = one.cert.length;
  const key = one.key.length;
  for (let at = 0; at < certificate; at += 3) findPairProblem({ ...one, cert: damaged(one.cert, at) });
  const numbers = { from: 28 + Math.ceil(36 / 3) * 4, to: 28 + Math.floor((36 + 32) / 3) * 4 };
  for (let at = 0; at < key; at += 3) {
    const problem = findPairProblem({ ...one, key: damaged(one.key, at) });
    if (at >= numbers.from && at < numbers.to && one.key[at] !== 10) expect(problem).not.toBeNull();
  }
});
