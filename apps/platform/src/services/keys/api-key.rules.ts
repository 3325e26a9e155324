// Format of an API key: a searchable prefix, 190 random bits, and a checksum. With the checksum, a scanner for leaked secrets can
// recognize a real key offline.

const PREFIX = 'tnl_';
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_CHARACTERS = 32;
/** Number of base-62 digits of the checksum. 62^6 is greater than 2^32, so a CRC-32 fits. */
const CHECKSUM_CHARACTERS = 6;
/** Largest multiple of 62 below 256. Greater bytes are skipped, because they would favor the first letters of the alphabet. */
const UNBIASED_BELOW = 248;

/**
 * Number of random bytes for an API key: twice the number of random characters. The chance of skipping more than half of the bytes is
 * negligible.
 */
export const API_KEY_RANDOM_BYTES = 2 * RANDOM_CHARACTERS;

const FORM = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_CHARACTERS + CHECKSUM_CHARACTERS}}$`);

/** Creates an API key from API_KEY_RANDOM_BYTES bytes of a cryptographic random source. */
export const makeApiKey = (random: Uint8Array): string => {
  const letters: string[] = [];
  for (const byte of random) {
    if (byte < UNBIASED_BELOW && letters.length < RANDOM_CHARACTERS) letters.push(BASE62.charAt(byte % BASE62.length));
  }
  if (letters.length < RANDOM_CHARACTERS) throw new RangeError('too few random bytes for an API key');
  const secret = letters.join('');
  return PREFIX + secret + checksumOf(secret);
};

/** Returns true if the text has the format of an API key and a correct checksum. The key may still be unknown to the platform. */
export const isApiKey = (text: string): boolean => {
  if (!FORM.test(text)) return false;
  const secret = text.slice(PREFIX.length, PREFIX.length + RANDOM_CHARACTERS);
  return text.endsWith(checksumOf(secret));
};

/** Returns true if the text has the prefix of an API key, even with typing errors after the prefix. */
export const looksLikeApiKey = (text: string): boolean => text.startsWith(PREFIX);

/** Checksum of an API key: CRC-32 of the random characters, as a base-62 number with the most significant digit first. */
const checksumOf = (secret: string): string => {
  let rest = crc32(secret);
  let digits = '';
  for (let count = 0; count < CHECKSUM_CHARACTERS; count += 1) {
    digits = BASE62.charAt(rest % BASE62.length) + digits;
    rest = Math.floor(rest / BASE62.length);
  }
  return digits;
};

/** CRC-32 of an ASCII text, with the polynomial of zip and Ethernet (0xEDB88320). */
const crc32 = (text: string): number => {
  let crc = 0xffff_ffff;
  for (let index = 0; index < text.length; index += 1) {
    crc ^= text.charCodeAt(index);
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb8_8320 : 0);
  }
  return (crc ^ 0xffff_ffff) >>> 0;
};
