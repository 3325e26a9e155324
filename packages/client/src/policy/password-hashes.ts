// Hashes passwords with scrypt before they leave the client. In a group the salt is derived from the group key and the user, so that
// members with the same password send the same hash. Without a group the salt is random, and a password keeps its hash for the life of the
// process.
import { createHmac, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { Cache, type Secret, SerialQueue } from '@tunnel/runtime';

const PREFIX = '$scrypt$ln=14,r=8,p=1$';
const COST = { N: 2 ** 14, r: 8, p: 1 } as const;
const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** Pattern of a password hash, with salt (16 bytes) and digest (32 bytes) in Base64 without padding. */
const LINE = /^\$scrypt\$ln=14,r=8,p=1\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$/;

/** Placeholder with the length of a real hash, matching no password. Used until the password is hashed. */
export const UNMADE_LINE = `${PREFIX}${'A'.repeat(22)}$${'A'.repeat(43)}`;

const text64 = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '');

const derive = (password: string, salt: Buffer): Promise<Buffer> =>
  new Promise((resolve, reject) =>
    scrypt(Buffer.from(password, 'utf8'), salt, HASH_BYTES, COST, (error, hash) =>
      error === null ? resolve(hash) : reject(error),
    ),
  );

/** Hashes a password. Returns `$scrypt$…` for `users` of a policy. */
export const hashPassword = async (password: string, salt: Buffer = randomBytes(SALT_BYTES)): Promise<string> =>
  `${PREFIX}${text64(salt)}$${text64(await derive(password, salt))}`;

export const isPasswordRight = async (line: string, password: string): Promise<boolean> => {
  const [, salt = '', hash = ''] = LINE.exec(line) ?? [];
  const right = Buffer.from(hash, 'base64');
  const given = await derive(password, Buffer.from(salt, 'base64'));
  return right.length === given.length && timingSafeEqual(right, given);
};

const groupSalt = (groupKey: string, user: string): Buffer =>
  createHmac('sha256', groupKey).update(`basic-auth\0${user}`, 'utf8').digest().subarray(0, SALT_BYTES);

/** Maximum number of cached password hashes, kept for reloads. */
const LINES_MAX = 1000;

/** Cached password hashes of one client. */
export class PasswordLines {
  /** Secret for the cache keys, so that they reveal nothing about passwords, even in a memory dump. */
  readonly #secret = randomBytes(32);
  readonly #lines = new Cache<string, string>({ max: LINES_MAX });
  /** Hashes one password at a time, because Node's thread pool also resolves names. A policy has fewer users than the queue holds. */
  readonly #turns = new SerialQueue({
    maxWaiting: 100_000,
    full: () => new Error('too many passwords are waiting to be hashed'),
  });

  /** Resolves with the hash to send. Every combination of password, user and group is hashed once. */
  lineOf(user: string, password: Secret, groupKey: Secret | null): Promise<string> {
    const plain = password.reveal();
    const key = this.#keyOf([user, plain, groupKey?.reveal() ?? '', groupKey === null ? 'alone' : 'group']);
    return this.#turns.run(async () => {
      const known = this.#lines.get(key);
      if (known !== undefined) return known;
      const line = await hashPassword(plain, groupKey === null ? undefined : groupSalt(groupKey.reveal(), user));
      this.#lines.set(key, line);
      return line;
    });
  }

  #keyOf(parts: readonly string[]): string {
    return createHmac('sha256', this.#secret).update(JSON.stringify(parts)).digest('base64');
  }
}
