// Passwords as they leave the client: scrypt, never plain. In a group the salt comes from the group's key and the user, so that members with one
// password have one line; alone it is chance, and a password keeps its line for as long as the process lives.
import { createHmac, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { Cache, type Secret } from '@tunnel/runtime';

/** passwords of policies whose hashes are kept, so that a reload makes them once */
const POLICY_PASSWORD_LINES_MAX = 1000;

const PREFIX = '$scrypt$ln=14,r=8,p=1$';
const COST = { N: 2 ** 14, r: 8, p: 1 } as const;
const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** Base64 without padding: 16 and 32 bytes. */
const LINE = /^\$scrypt\$ln=14,r=8,p=1\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$/;

/** As long as every line, and of no password: stands for one until it is made. */
export const UNMADE_LINE = `${PREFIX}${'A'.repeat(22)}$${'A'.repeat(43)}`;

const text64 = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '');

const derive = (password: string, salt: Buffer): Promise<Buffer> =>
  new Promise((resolve, reject) =>
    scrypt(Buffer.from(password, 'utf8'), salt, HASH_BYTES, COST, (error, hash) =>
      error === null ? resolve(hash) : reject(error),
    ),
  );

/** `$scrypt$…` for `users` of a policy. */
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

/** Names an entry without saying what is in it, also in a dump of the memory. */
const PROCESS_KEY = randomBytes(32);

const keyOf = (parts: readonly string[]): string =>
  createHmac('sha256', PROCESS_KEY).update(JSON.stringify(parts)).digest('base64');

/** Lines by the hash of password, user and group: each line is made once. */
const lines = new Cache<string, string>({ max: POLICY_PASSWORD_LINES_MAX });

/** One after the other: the threads that hash are those that look up names. */
let last: Promise<unknown> = Promise.resolve();

/** Settles with the line that is sent. */
export const lineOf = async (user: string, password: Secret, groupKey: Secret | null): Promise<string> => {
  const plain = password.reveal();
  const key = keyOf([user, plain, groupKey?.reveal() ?? '', groupKey === null ? 'alone' : 'group']);
  const make = async (): Promise<string> => {
    const known = lines.get(key);
    if (known !== undefined) return known;
    const salt = groupKey === null ? undefined : groupSalt(groupKey.reveal(), user);
    const line = await hashPassword(plain, salt);
    lines.set(key, line);
    return line;
  };
  const made = last.then(make);
  last = made.catch(() => {});
  return made;
};
