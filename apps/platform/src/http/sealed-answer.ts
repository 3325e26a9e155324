// Kept answers hold secrets (a client secret, a link to the portal), and are only ever asked for by somebody who has the key that
// they were given under: so that key, which is not stored itself, is what opens them.
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

export interface AnswerKey {
  readonly userId: string;
  readonly key: string;
}

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Under which it is looked for. */
export const nameOfKey = ({ userId, key }: AnswerKey): string =>
  createHash('sha256').update(`name ${userId} ${key}`).digest('hex');

const cipherKey = ({ userId, key }: AnswerKey): Buffer =>
  Buffer.from(hkdfSync('sha256', key, userId, 'kept answer', 32));

export const sealAnswer = (of: AnswerKey, body: unknown): string => {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, cipherKey(of), nonce);
  const sealed = Buffer.concat([cipher.update(JSON.stringify(body), 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64');
};

export const openAnswer = (of: AnswerKey, sealed: string): unknown => {
  const bytes = Buffer.from(sealed, 'base64');
  const decipher = createDecipheriv(CIPHER, cipherKey(of), bytes.subarray(0, NONCE_BYTES));
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  const text = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
  return JSON.parse(text.toString('utf8'));
};
