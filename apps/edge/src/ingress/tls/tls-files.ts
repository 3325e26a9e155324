// The certificate and key of `[tls]`, read and tried as a pair, so that a mistake is one clear line and not a failing handshake.
import { readFile } from 'node:fs/promises';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { Fault } from '@tunnel/errors';

export interface TlsPaths {
  readonly cert_path: string;
  readonly key_path: string;
}

export interface TlsFiles {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** For every port alike, at its start and at a renewal: what setSecureContext is not told it forgets. */
export const secureOptionsOf = ({ cert, key }: TlsFiles): SecureContextOptions => ({
  cert,
  key,
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.3',
});

/** null: the edge speaks in clear. */
export const loadTlsFiles = async (paths: TlsPaths): Promise<TlsFiles | null> => {
  if (paths.cert_path === '' && paths.key_path === '') return null;
  const cert = await read(paths.cert_path, 'cert_path');
  const key = await read(paths.key_path, 'key_path');
  try {
    createSecureContext(secureOptionsOf({ cert, key }));
  } catch (error) {
    throw tlsFault(`${paths.cert_path} and ${paths.key_path}`, (error as Error).message, error);
  }
  return { cert, key };
};

const read = async (file: string, keyName: string): Promise<Buffer> => {
  if (file === '') throw tlsFault(`\`${keyName}\``, 'it is empty while the other one is set');
  try {
    return await readFile(file);
  } catch (error) {
    throw tlsFault(file, (error as NodeJS.ErrnoException).code ?? String(error), error);
  }
};

const tlsFault = (file: string, reason: string, cause?: unknown): Fault =>
  new Fault('CONFIG_TLS_FILES', { file, reason }, { cause });
