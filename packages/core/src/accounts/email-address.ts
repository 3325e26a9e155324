// E-mail addresses: how one is compared, and what passes for one.

/** Of a whole address, of the part before the @, and of one label of the domain (RFC 5321, RFC 1035). */
const ADDRESS_MAX_CHARACTERS = 254;
const LOCAL_MAX_CHARACTERS = 64;
const LABEL_MAX_CHARACTERS = 63;

/** What may stand before the @ without quotes. Quoted forms are refused: nobody has one, and headers are made of these. */
const LOCAL = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const LABEL = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

/** Trimmed and in lower case: one address is one account. Of ASCII alone: toLowerCase() makes a k of the Kelvin sign too. */
export const normalizeAddress = (text: string): string =>
  text.trim().replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/** Of a normalized one. ASCII only: letters that merely look alike would be accounts that merely look alike. */
export const isAddress = (address: string): boolean => {
  if (address.length > ADDRESS_MAX_CHARACTERS) return false;
  const at = address.lastIndexOf('@');
  if (at < 1 || at > LOCAL_MAX_CHARACTERS) return false;
  const labels = address.slice(at + 1).split('.');
  return (
    LOCAL.test(address.slice(0, at)) &&
    labels.every((label) => label.length <= LABEL_MAX_CHARACTERS && LABEL.test(label))
  );
};
