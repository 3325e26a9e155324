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
 * Of the name `text[from, to)`: by length and first letter, so that most names are settled without a copy of them.
 * `http2-settings` belongs to an h2c upgrade, which is never passed on.
 */
export const roleAt = (text: string, from: number, to: number): FieldRole => {
  const first = text.charCodeAt(from) | 0x20;
  switch (to - from) {
    case 2:
    case 16:
    case 17:
      if (first !== LETTER_T && first !== LETTER_X && first !== LETTER_P) return 'ordinary';
      break;
    case 4:
      if (first !== LETTER_H) return 'ordinary';
      break;
    case 6:
      if (first !== LETTER_E) return 'ordinary';
      break;
    case 7:
      if (first !== LETTER_U) return 'ordinary';
      break;
    case 10:
    case 14:
      if (first !== LETTER_C && first !== LETTER_K && first !== LETTER_H) return 'ordinary';
      break;
    case 15:
      if (first !== LETTER_X) return 'ordinary';
      break;
    case 18:
    case 19:
      if (first !== LETTER_P) return 'ordinary';
      break;
    default:
      return 'ordinary';
  }
  const lower = text.slice(from, to).toLowerCase();
  return first === LETTER_X ? roleOfForwarded(lower) : roleOfLower(lower);
};

export const roleOf = (name: string): FieldRole => roleAt(name, 0, name.length);

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
    case 'host':
    case 'te':
    case 'expect':
    case 'upgrade':
    case 'connection':
      return lower;
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
