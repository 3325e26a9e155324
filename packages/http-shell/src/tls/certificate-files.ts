// The certificate in the files of `[tls]`: loaded at the start, and again whenever its files change. Looking is by stat, not by
// fs.watch: it follows symbolic links, and survives renames, network file systems and containers.
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
  /** A new pair, which has been tried: for handshakes from now on. */
  readonly onRenewed: (files: TlsFiles) => void;
}

export class CertificateFiles {
  readonly #options: CertificateFilesOptions;
  #current: TlsFiles | null = null;
  /** The state of the files that is in use, or that was found broken and said so. */
  #settled = '';
  /** Broken at one look: perhaps only one of the two files is written yet. */
  #doubted = '';
  #isLooking = false;
  #looking: Timer | undefined;

  constructor(options: CertificateFilesOptions) {
    this.#options = options;
  }

  /** null: none is named. */
  get current(): TlsFiles | null {
    return this.#current;
  }

  /** Rejects with a fault that names the file. */
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
      // Before they are read: what changes meanwhile is another state at the next look.
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

// ---- its two files: read and tried as a pair, so that a mistake is one clear line and not a failing handshake ----

interface TlsPaths {
  readonly cert_path: string;
  readonly key_path: string;
}

export type TlsFiles = CertificatePair;

/** null: none is named. */
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
