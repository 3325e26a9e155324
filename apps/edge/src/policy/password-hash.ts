// Password hashes in the format of policies, `$scrypt$ln=14,r=8,p=1$salt$hash`. Only this scrypt cost is accepted.
import { randomBytes, type ScryptOptions, scrypt, scryptSync, timingSafeEqual } from 'node:crypto';

/**
 * scrypt cost: 16 MiB of memory and 50 to 130 ms, enough for a hash that is never at rest. `maxmem` is an upper bound that Node.js
 * requires in addition.
 */
const COST: ScryptOptions = { N: 2 ** 14, r: 8, p: 1, maxmem: 64 * 1024 * 1024 };
const HASH_BYTES = 32;
const SALT_BYTES = 16;
const FORM = /^\$scrypt\$ln=14,r=8,p=1\$([A-Za-z0-9+/_-]+={0,2})\$([A-Za-z0-9+/_-]+={0,2})$/;

interface ReadHash {
  readonly salt: Buffer;
  readonly hash: Buffer;
}

const readHash = (line: string): ReadHash | null => {
  const parts = FORM.exec(line);
  if (parts === null) return null;
  const [, salt = '', hash = ''] = parts;
  const read = { salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') };
  return read.salt.length > 0 && read.hash.length >= HASH_BYTES / 2 ? read : null;
};

/** Random hash that no password matches. Used for unknown users, so that their check takes as long as any other check. */
const NOBODY: ReadHash = { salt: randomBytes(SALT_BYTES), hash: randomBytes(HASH_BYTES) };

/**
 * Checks a password in the thread pool. If `line` is null or not a valid hash, resolves to false after the same time as a wrong password.
 */
export const isPassword = (password: string, line: string | null): Promise<boolean> => {
  const read = line === null ? null : readHash(line);
  const { salt, hash } = read ?? NOBODY;
  return new Promise((resolve, reject) => {
    scrypt(password, salt, hash.length, COST, (error, derived) => {
      if (error !== null) reject(error);
      else resolve(timingSafeEqual(derived, hash) && read !== null);
    });
  });
};

/** Hashes a plain-text password from the operator's file. Blocks, and is therefore used only at startup. */
export const hashPassword = (password: string): string => {
  const salt = randomBytes(SALT_BYTES);
  return `$scrypt$ln=14,r=8,p=1$${plain64(salt)}$${plain64(scryptSync(password, salt, HASH_BYTES, COST))}`;
};

const plain64 = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '');
