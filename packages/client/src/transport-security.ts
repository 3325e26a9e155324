// The rule that decides whether the control port is spoken to in TLS, and with which trust.
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { Fault } from '@tunnel/errors';

export interface SecurityOptions {
  /** true forces TLS, false forbids it; left out: TLS unless the host is loopback. */
  readonly tls?: boolean | undefined;
  /** Accepts any certificate: for a test server only. */
  readonly insecure?: boolean | undefined;
  /** PEM file of the authorities to trust instead of the system's. */
  readonly caFile?: string | undefined;
}

export type TransportSecurity =
  /** `loopbackOnly`: nobody allowed clear text, so it may go to this machine and nowhere else. */
  | { readonly kind: 'plain'; readonly loopbackOnly: boolean }
  | { readonly kind: 'tls'; readonly ca: string | undefined; readonly verify: boolean };

export const decideSecurity = (host: string, options: SecurityOptions): TransportSecurity => {
  if (options.tls === false) return { kind: 'plain', loopbackOnly: false };
  if (options.tls === undefined && isLoopback(host)) return { kind: 'plain', loopbackOnly: true };
  return {
    kind: 'tls',
    ca: options.caFile === undefined ? undefined : readAuthorities(options.caFile),
    verify: options.insecure !== true,
  };
};

export const isLoopback = (host: string): boolean => {
  const plain = host.toLowerCase().replace(/^::ffff:/, '');
  if (isIP(plain) === 4) return plain.startsWith('127.');
  return plain === '::1' || plain === 'localhost' || plain === 'localhost.';
};

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
};

/** A file without a certificate would be taken in silence, and every server be refused for another reason. */
export const readAuthorities = (file: string): string => {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code = 'unreadable' } = error as NodeJS.ErrnoException;
    throw new Fault('CONFIG_FILE_UNREADABLE', { file, reason: REASONS[code] ?? code }, { cause: error });
  }
  if (!/-----BEGIN (TRUSTED |X509 )?CERTIFICATE-----/.test(text)) {
    throw new Fault('CONFIG_FILE_UNREADABLE', { file, reason: 'it holds no certificate in PEM form' });
  }
  return text;
};
