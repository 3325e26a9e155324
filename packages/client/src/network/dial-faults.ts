// Converts Node's errors of a failed dial into messages for users. No I/O.
import { Fault } from '@tunnel/errors';

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was closed',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'the name cannot be resolved right now',
  ETIMEDOUT: 'no response',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'the network is unreachable',
  EADDRNOTAVAIL: 'no local address to connect from',
  EACCES: 'not permitted',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'no common TLS version',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'no common TLS version',
  EMFILE: 'this process has too many open files',
  // Words for errors of Unix sockets and folders.
  ENOENT: 'no such file',
  ENOTDIR: 'part of the path is not a folder',
  EPROTOTYPE: 'the socket takes datagrams, not connections',
  EAGAIN: 'the connection queue of the socket is full',
};

export const reasonOf = (error: unknown): string => {
  if (error instanceof Fault) return error.message;
  const code = codeOf(error);
  return (
    WORDS[code] ?? (error instanceof Error && error.message !== '' ? plain(error.message) : code || 'unknown error')
  );
};

/** Removes advice about Node.js flags from certificate errors, because users of the client cannot set these flags. */
const plain = (message: string): string => message.replace(/; if the root CA is installed locally, .*$/s, '');

export const codeOf = (error: unknown): string => {
  const code: unknown = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : '';
};

export const unreachable = (server: string, reason: string, cause?: unknown): Fault =>
  new Fault('CLIENT_SERVER_UNREACHABLE', { server, reason }, { cause });

export const notAnEdge = (server: string, reason: string): Fault => new Fault('CLIENT_NOT_AN_EDGE', { server, reason });

/** Pattern of the codes of all certificate errors of OpenSSL and Node.js. */
const CERTIFICATE_CODE = /CERT|ISSUER|SELF_SIGNED|LEAF_SIGNATURE|ALTNAME|HOSTNAME_MISMATCH|CRL/;

/**
 * Tells whether the peer's certificate failed verification. ERR_SSL_… codes are excluded: they are the peer's alerts about our certificate.
 */
export const isCertificateTrouble = (error: unknown): boolean =>
  CERTIFICATE_CODE.test(codeOf(error)) && !codeOf(error).startsWith('ERR_SSL_');

export const certificateFault = (server: string, error: unknown): Fault | undefined => {
  if (!isCertificateTrouble(error)) return undefined;
  return new Fault('CLIENT_CERTIFICATE', { server, reason: `${reasonOf(error)} (${codeOf(error)})` }, { cause: error });
};

/** An edge rejects every handshake until its first certificate is issued. Newer OpenSSL writes SSL/TLS in the code, older OpenSSL SSLV3. */
export const lacksCertificate = (error: unknown): boolean =>
  /_(ALERT_HANDSHAKE_FAILURE|UNRECOGNIZED_NAME)$/.test(codeOf(error));

/** Errors possibly caused by TLS on a plain port or the reverse. A probe finds out. */
export const mayBeWrongKind = (error: unknown): boolean =>
  /^(ECONNRESET|EPIPE|EPROTO|HPE_.*|ERR_SSL_.*)$/.test(codeOf(error));
