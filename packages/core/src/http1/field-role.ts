// The field names that a proxy must know, and what each is to it. The one list: parser, rewriting and trailers read it.

export type FieldRole =
  /** Passed on as it is. */
  | 'ordinary'
  | 'host'
  | 'length'
  | 'coding'
  | 'connection'
  | 'upgrade'
  | 'expect'
  | 'te'
  | 'forwarded-for'
  /** Written anew by us, whatever the visitor claims. */
  | 'forwarded'
  /** About one connection only (RFC 9110, 7.6.1; the Proxy- fields speak to the proxy in between, and that is not the service). */
  | 'hop';

/**
 * By length and first letter, so that most names are settled without a copy in lower case.
 * `http2-settings` belongs to an h2c upgrade, which is never passed on.
 */
export const roleOf = (name: string): FieldRole => {
  const first = name.charCodeAt(0) | 0x20;
  switch (name.length) {
    case 2:
      return first === LETTER_T && name.toLowerCase() === 'te' ? 'te' : 'ordinary';
    case 4:
      return first === LETTER_H && name.toLowerCase() === 'host' ? 'host' : 'ordinary';
    case 6:
      return first === LETTER_E && name.toLowerCase() === 'expect' ? 'expect' : 'ordinary';
    case 7:
      return first === LETTER_U && name.toLowerCase() === 'upgrade' ? 'upgrade' : 'ordinary';
    case 10:
      return first === LETTER_C || first === LETTER_K ? roleOfLower(name.toLowerCase()) : 'ordinary';
    case 14:
      return first === LETTER_C || first === LETTER_H ? roleOfLower(name.toLowerCase()) : 'ordinary';
    case 15:
      return first === LETTER_X ? roleOfForwarded(name.toLowerCase()) : 'ordinary';
    case 16:
    case 17:
      if (first === LETTER_X) return roleOfForwarded(name.toLowerCase());
      return first === LETTER_P || first === LETTER_T ? roleOfLower(name.toLowerCase()) : 'ordinary';
    case 18:
    case 19:
      return first === LETTER_P ? roleOfLower(name.toLowerCase()) : 'ordinary';
    default:
      return 'ordinary';
  }
};

const LETTER_C = 0x63;
const LETTER_E = 0x65;
const LETTER_H = 0x68;
const LETTER_K = 0x6b;
const LETTER_P = 0x70;
const LETTER_T = 0x74;
const LETTER_U = 0x75;
const LETTER_X = 0x78;

const roleOfLower = (lower: string): FieldRole => {
  switch (lower) {
    case 'connection':
      return 'connection';
    case 'content-length':
      return 'length';
    case 'transfer-encoding':
      return 'coding';
    case 'keep-alive':
    case 'http2-settings':
    case 'proxy-connection':
    case 'proxy-authenticate':
    case 'proxy-authorization':
      return 'hop';
    default:
      return 'ordinary';
  }
};

const roleOfForwarded = (lower: string): FieldRole => {
  if (lower === 'x-forwarded-for') return 'forwarded-for';
  if (lower === 'x-forwarded-host' || lower === 'x-forwarded-proto') return 'forwarded';
  // `X_Forwarded_For` is the same variable as ours to a CGI, WSGI or PHP service: a claim that must not stand beside it.
  const isLookalike = lower.includes('_') && roleOfForwarded(lower.replaceAll('_', '-')) !== 'ordinary';
  return isLookalike ? 'forwarded' : 'ordinary';
};
