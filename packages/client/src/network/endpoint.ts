// Parses the address of an edge's control port, and decides on TLS and trust.
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { Fault } from '@tunnel/errors';
import { isLoopbackHost } from '@tunnel/rules/net';

export const DEFAULT_CONTROL_PORT = 4040;

export interface ServerAddress {
  /** Host name or IP address of the server, without brackets. */
  readonly host: string;
  readonly port: number;
  /** Address of the server for display: host:port, IPv6 in brackets. */
  readonly text: string;
}

export const parseServerAddress = (text: string): ServerAddress => {
  const trimmed = text.trim();
  const { host, portText } = split(trimmed);
  const port = portText === undefined ? DEFAULT_CONTROL_PORT : parsePort(portText, trimmed);
  if (!isHost(host)) throw refuse(trimmed, 'is not host:port');
  return { host, port, text: `${isIP(host) === 6 ? `[${host}]` : host}:${port}` };
};

const split = (text: string): { host: string; portText?: string } => {
  if (isIP(text) === 6) return { host: text };
  const bracketed = /^\[([^\]]+)\](?::(.*))?$/.exec(text);
  if (bracketed?.[1] !== undefined) {
    if (isIP(bracketed[1]) !== 6) throw refuse(text, 'has no IPv6 address in the brackets');
    return withPort(bracketed[1], bracketed[2]);
  }
  if (text.includes('://')) throw refuse(text, 'is a URL; use host:port');
  const colon = text.lastIndexOf(':');
  return colon < 0 ? { host: text } : withPort(text.slice(0, colon), text.slice(colon + 1));
};

const withPort = (host: string, portText: string | undefined): { host: string; portText?: string } =>
  portText === undefined ? { host } : { host, portText };

const parsePort = (text: string, whole: string): number => {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535) throw refuse(whole, 'needs a port from 1 to 65535');
  return port;
};

const LABEL = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?';
const HOST_NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*\\.?$`, 'i');

const isHost = (host: string): boolean => isIP(host) !== 0 || (host.length <= 253 && HOST_NAME.test(host));

const refuse = (text: string, reason: string): Fault =>
  new Fault('CLIENT_USAGE', { reason: `server address \`${text}\` ${reason}` });

export interface SecurityOptions {
  /** True forces TLS, false forbids TLS. If undefined, TLS is used unless the host is loopback. */
  readonly tls?: boolean | undefined;
  /** Accepts any certificate of the server. Only for test servers. */
  readonly insecure?: boolean | undefined;
  /** PEM file with the authorities to trust instead of the system's authorities. */
  readonly caFile?: string | undefined;
}

export type TransportSecurity =
  /** `loopbackOnly`: unencrypted traffic was not explicitly allowed, so it may only go to this machine. */
  | { readonly kind: 'plain'; readonly loopbackOnly: boolean }
  | { readonly kind: 'tls'; readonly ca: string | undefined; readonly verify: boolean };

/** Decides on TLS: on by default, unless turned off or the host is this machine. */
export const decideSecurity = (host: string, options: SecurityOptions): TransportSecurity => {
  if (options.tls === false) return { kind: 'plain', loopbackOnly: false };
  if (options.tls === undefined && isLoopbackHost(host)) return { kind: 'plain', loopbackOnly: true };
  return {
    kind: 'tls',
    ca: options.caFile === undefined ? undefined : readAuthorities(options.caFile),
    verify: options.insecure !== true,
  };
};

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
  EISDIR: 'the path is a folder',
};

/** Reads a PEM file. A file without a certificate is an error, since otherwise every server would be rejected for a misleading reason. */
export const readAuthorities = (file: string): string => {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code = 'unreadable' } = error as NodeJS.ErrnoException;
    throw new Fault('CONFIG_FILE_UNREADABLE', { file, reason: REASONS[code] ?? code }, { cause: error });
  }
  if (!/-----BEGIN (TRUSTED |X509 )?CERTIFICATE-----/.test(text)) {
    throw new Fault('CONFIG_FILE_UNREADABLE', { file, reason: 'the file contains no PEM certificate' });
  }
  return text;
};
