// The form of an API key: a prefix to search for, 190 bits of chance, and a checksum, so that a scanner of leaked secrets can
// tell a real key from a look-alike without asking anybody.

const PREFIX = 'tnl_';
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_CHARACTERS = 32;
/** 62^6 is more than 2^32. */
const CHECKSUM_CHARACTERS = 6;
/** The largest multiple of 62 below 256: bytes from here on would favour the first letters. */
const UNBIASED_BELOW = 248;

/** Twice as many as there are characters: that half of them are refused happens in no lifetime. */
export const API_KEY_RANDOM_BYTES = 2 * RANDOM_CHARACTERS;

const FORM = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_CHARACTERS + CHECKSUM_CHARACTERS}}$`);

/** `random`: API_KEY_RANDOM_BYTES of a source that nobody can guess. */
export const makeApiKey = (random: Uint8Array): string => {
  const letters: string[] = [];
  for (const byte of random) {
    if (byte < UNBIASED_BELOW && letters.length < RANDOM_CHARACTERS) letters.push(BASE62.charAt(byte % BASE62.length));
  }
  if (letters.length < RANDOM_CHARACTERS) throw new RangeError('too few random bytes for an API key');
  const secret = letters.join('');
  return PREFIX + secret + checksumOf(secret);
};

/** It has the form of a key and its checksum is right. Whether it is anybody's key is another question. */
export const isApiKey = (text: string): boolean => {
  if (!FORM.test(text)) return false;
  const secret = text.slice(PREFIX.length, PREFIX.length + RANDOM_CHARACTERS);
  return text.endsWith(checksumOf(secret));
};

/** Somebody means it as one, mistyped or not. */
export const looksLikeApiKey = (text: string): boolean => text.startsWith(PREFIX);

/** CRC-32 of the random characters, as a number of base 62, the highest digit first. */
const checksumOf = (secret: string): string => {
  let rest = crc32(secret);
  let digits = '';
  for (let count = 0; count < CHECKSUM_CHARACTERS; count += 1) {
    digits = BASE62.charAt(rest % BASE62.length) + digits;
    rest = Math.floor(rest / BASE62.length);
  }
  return digits;
};

/** As in zip and Ethernet (polynomial 0xEDB88320), of ASCII. */
const crc32 = (text: string): number => {
  let crc = 0xffff_ffff;
  for (let index = 0; index < text.length; index += 1) {
    crc ^= text.charCodeAt(index);
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb8_8320 : 0);
  }
  return (crc ^ 0xffff_ffff) >>> 0;
};
