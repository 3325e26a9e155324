import { expect, it } from 'vitest';
import { decryptResponse, encryptResponse, hashOfKey } from './idempotency-store.ts';

const OURS = { userId: 'ann', key: 'order-1' };
const BODY = { client_secret: 'seti_1_secret_2' };

it('a stored response is unreadable, and decrypts only with its idempotency key and account', () => {
  const sealed = encryptResponse(OURS, BODY);
  expect(Buffer.from(sealed, 'base64').toString('latin1')).not.toContain('secret');
  expect(decryptResponse(OURS, sealed)).toEqual(BODY);
  expect(() => decryptResponse({ ...OURS, key: 'order-2' }, sealed)).toThrow();
  expect(() => decryptResponse({ ...OURS, userId: 'bob' }, sealed)).toThrow();
});

it('a stored response is encrypted differently each time, and a changed byte is detected', () => {
  const bytes = Buffer.from(encryptResponse(OURS, BODY), 'base64');
  expect(encryptResponse(OURS, BODY)).not.toBe(bytes.toString('base64'));
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1);
  expect(() => decryptResponse(OURS, bytes.toString('base64'))).toThrow();
});

it('the lookup hash of an idempotency key differs per account and reveals neither', () => {
  expect(hashOfKey(OURS)).toMatch(/^[0-9a-f]{64}$/);
  expect(hashOfKey({ ...OURS, userId: 'bob' })).not.toBe(hashOfKey(OURS));
});
