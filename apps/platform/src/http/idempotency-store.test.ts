import { expect, it } from 'vitest';
import { nameOfKey, openAnswer, sealAnswer } from './idempotency-store.ts';

const OURS = { userId: 'ann', key: 'order-1' };
const BODY = { client_secret: 'seti_1_secret_2' };

it('is opened by the key it was kept under, and shows nothing without', () => {
  const sealed = sealAnswer(OURS, BODY);
  expect(Buffer.from(sealed, 'base64').toString('latin1')).not.toContain('secret');
  expect(openAnswer(OURS, sealed)).toEqual(BODY);
  expect(() => openAnswer({ ...OURS, key: 'order-2' }, sealed)).toThrow();
  expect(() => openAnswer({ ...OURS, userId: 'bob' }, sealed)).toThrow();
});

it('is not opened when a byte was changed, and is another text each time', () => {
  const bytes = Buffer.from(sealAnswer(OURS, BODY), 'base64');
  expect(sealAnswer(OURS, BODY)).not.toBe(bytes.toString('base64'));
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1);
  expect(() => openAnswer(OURS, bytes.toString('base64'))).toThrow();
});

it('is looked for under a name that tells neither key nor account', () => {
  expect(nameOfKey(OURS)).toMatch(/^[0-9a-f]{64}$/);
  expect(nameOfKey({ ...OURS, userId: 'bob' })).not.toBe(nameOfKey(OURS));
});
