import { expect, it } from 'vitest';
import { decryptResponse, encryptResponse, hashOfKey } from './idempotency-store.ts';

const OURS = { userId: 'ann', key: 'order-1' };
const BODY = { client_secret: 'seti_1_secret_2' };

it('is opened by the key it was kept under, and shows nothing without', () => {
  const sealed = encryptResponse(OURS, BODY);
  expect(Buffer.from(sealed, 'base64').toString('latin1')).not.toContain('secret');
  expect(decryptResponse(OURS, sealed)).toEqual(BODY);
  expect(() => decryptResponse({ ...OURS, key: 'order-2' }, sealed)).toThrow();
  expect(() => decryptResponse({ ...OURS, userId: 'bob' }, sealed)).toThrow();
});

it('is not opened when a byte was changed, and is another text each time', () => {
  const bytes = Buffer.from(encryptResponse(OURS, BODY), 'base64');
  expect(encryptResponse(OURS, BODY)).not.toBe(bytes.toString('base64'));
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1);
  expect(() => decryptResponse(OURS, bytes.toString('base64'))).toThrow();
});

it('is looked for under a name that tells neither key nor account', () => {
  expect(hashOfKey(OURS)).toMatch(/^[0-9a-f]{64}$/);
  expect(hashOfKey({ ...OURS, userId: 'bob' })).not.toBe(hashOfKey(OURS));
});
