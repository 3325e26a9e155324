// Certificate from the files of `[tls]`: loaded at the start, and again whenever the files change. Changes are detected with stat instead
// of fs.watch, because stat follows symbolic links, and works with renames, network file systems and containers.
import { readFile, stat } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { Fault } from '@tunnel/errors';
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import { type CertificatePair, secureOptionsOf } from './tls-options.ts';

export interface CertificateFilesOptions {
  readonly paths: TlsPaths;
  readonly lookEveryMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called with a new, tested pair of certificate and key, to be used for future handshakes. */
  readonly onRenewed: (files: TlsFiles) => void;
}

export class CertificateFiles {
  readonly #options: CertificateFilesOptions;
  #current: TlsFiles | null = null;
  /** State of the files that needs no further action: the files were loaded, or were logged as invalid. */
  #settled = '';
  /**
   * State of the files that was invalid at one check. Perhaps only one of the two files has been written yet, so the warning waits for
   * the next check.
   */
  #doubted = '';
  #isLooking = false;
  #looking: Timer | undefined;

  constructor(options: CertificateFilesOptions) {
    this.#options = options;
  }

  /** The loaded certificate, or null if no files are configured. */
  get current(): TlsFiles | null {
    return this.#current;
  }

  /** Loads the certificate and starts checking for changes. Rejects with a Fault that names the file. */
  async start(): Promise<void> {
    const { paths, clock, lookEveryMs } = this.#options;
    this.#settled = await stateOf(paths);
    this.#current = await loadTlsFiles(paths);
    if (this.#current === null) return;
    this.#looking = clock.setInterval(() => void this.look(), lookEveryMs);
  }

  stop(): void {
    this.#looking?.cancel();
  }

  async look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      // Determine the state before reading the files: a change during the read then counts as a new state at the next check.
      const state = await stateOf(this.#options.paths);
      if (state !== this.#settled) await this.#load(state);
    } finally {
      this.#isLooking = false;
    }
  }

  async #load(state: string): Promise<void> {
    const { paths, logger, onRenewed } = this.#options;
    try {
      const files = await loadTlsFiles(paths);
      this.#settled = state;
      if (files === null || this.#isCurrent(files)) return;
      this.#current = files;
      onRenewed(files);
      logger.info({ cert: paths.cert_path }, 'certificate files reloaded; new connections use the new certificate');
    } catch (error) {
      if (state === this.#doubted) {
        this.#settled = state;
        const reason = (error as Error).message;
        logger.warn({ reason }, 'cannot load the changed certificate; the previous certificate stays in use');
      }
      this.#doubted = state;
    }
  }

  #isCurrent({ cert, key }: TlsFiles): boolean {
    return this.#current !== null && this.#current.cert.equals(cert) && this.#current.key.equals(key);
  }
}

const stateOf = async (paths: TlsPaths): Promise<string> =>
  `${await fileStateOf(paths.cert_path)} ${await fileStateOf(paths.key_path)}`;

const fileStateOf = async (path: string): Promise<string> => {
  try {
    const { dev, ino, size, mtimeMs } = await stat(path);
    return `${dev}:${ino}:${size}:${mtimeMs}`;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown';
  }
};

// ---- certificate and key files: read and tested as a pair, so that a mistake causes a clear error instead of failing handshakes ----

interface TlsPaths {
  readonly cert_path: string;
  readonly key_path: string;
}

export type TlsFiles = CertificatePair;

/** Reads and tests the certificate and key. Returns null if no files are configured. */
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
  if (file === '') throw tlsFault(`\`${keyName}\``, 'empty, but the other path is set');
  try {
    return await readFile(file);
  } catch (error) {
    throw tlsFault(file, (error as NodeJS.ErrnoException).code ?? String(error), error);
  }
};

const tlsFault = (file: string, reason: string, cause?: unknown): Fault =>
  new Fault('CONFIG_TLS_FILES', { file, reason }, { cause });
