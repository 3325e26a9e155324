// Decodes access tokens, and builds valid and forged ones.
import {
  createHmac,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';

type Part = Readonly<Record<string, unknown>>;

const encode = (part: Part): string => Buffer.from(JSON.stringify(part)).toString('base64url');
const decode = (text: string): Part => JSON.parse(Buffer.from(text, 'base64url').toString()) as Part;

export const readJwt = (token: string): { header: Part; claims: Part } => {
  const [header = '', claims = ''] = token.split('.');
  return { header: decode(header), claims: decode(claims) };
};

/** Verifies a signature with Node.js only, without product code. */
export const isSignedBy = (token: string, jwk: JsonWebKey): boolean => {
  const [header = '', claims = '', signature = ''] = token.split('.');
  const key = createPublicKey({ key: jwk, format: 'jwk' });
  return verify(null, Buffer.from(`${header}.${claims}`), key, Buffer.from(signature, 'base64url'));
};

const signed = (header: Part, claims: Part, key: KeyObject): string => {
  const text = `${encode(header)}.${encode(claims)}`;
  return `${text}.${sign(null, Buffer.from(text), key).toString('base64url')}`;
};

/** Returns the header and claims with a signature of an unknown key. */
const signedByStranger = (header: Part, claims: Part): string =>
  signed(header, claims, generateKeyPairSync('ed25519').privateKey);

/** Returns forgeries of a valid token by the kind of change. `publicKey` is the JWK that verifies the token. */
export const tampered = (token: string, otherUserId: string, publicKey: Part): Record<string, string> => {
  const { header, claims } = readJwt(token);
  const [head = '', body = '', signature = ''] = token.split('.');
  const hmac = `${encode({ ...header, alg: 'HS256' })}.${body}`;
  const secret = Buffer.from(String(publicKey['x']), 'base64url');
  return {
    'another user': `${head}.${encode({ ...claims, sub: otherUserId })}.${signature}`,
    'a longer life': `${head}.${encode({ ...claims, exp: Number(claims['exp']) + 3600 })}.${signature}`,
    'no signature': `${head}.${body}.`,
    'two parts': `${head}.${body}`,
    'alg none': `${encode({ ...header, alg: 'none' })}.${body}.`,
    'HS256 with the public key': `${hmac}.${createHmac('sha256', secret).update(hmac).digest('base64url')}`,
    'a key of one’s own': signedByStranger(header, claims),
    'a key of one’s own, in the header': signedByStranger({ ...header, jwk: publicKey, kid: undefined }, claims),
    'an unknown kid': signedByStranger({ ...header, kid: 'sig_unknown' }, claims),
    'a kid that is a path': signedByStranger({ ...header, kid: '../../etc/passwd\u0000' }, claims),
    'a changed signature': `${head}.${body}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`,
    'a token cut short': token.slice(0, -10),
    nonsense: 'a.b.c',
    'ten thousand characters': 'x'.repeat(10_000),
  };
};
