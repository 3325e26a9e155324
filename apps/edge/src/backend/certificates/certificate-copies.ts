// Copies of the platform's certificates on the edge's disk, for a start while the platform is away. Each is sealed under a key that is derived
// from the edge's credential and written nowhere: a copied folder is worth nothing without that.
import { chmod, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type EdgeCertificate, edgeCertificate } from '@tunnel/contract';
import {
  ASIDE,
  type Clock,
  type Logger,
  SealedFiles,
  type Secret,
  SingleFlight,
  sha256Hex,
  type Timer,
} from '@tunnel/runtime';

/** a larger file is none of ours */
const CERTIFICATE_COPY_MAX_BYTES = 512 * 1024;
/** the pause after one that could not be written: a disk that is full stays so for a while */
export const CERTIFICATE_COPIES_AGAIN_MS = 60_000;
/** what copies that wait for the disk may take when the edge stops; the others are told again by the platform */
const CERTIFICATE_COPIES_STOP_MS = 3000;

export interface CertificateCopiesOptions {
  readonly folder: string;
  readonly credential: Secret;
  readonly clock: Clock;
  readonly logger: Logger;
  /** As it is when it is written; null: it has gone since. */
  readonly read: (id: string) => EdgeCertificate | null;
}

const FILE = /^[\da-f]{32}\.jwe$/;

export class CertificateCopies {
  readonly #options: CertificateCopiesOptions;
  readonly #sealed: SealedFiles;
  /** What the disk is behind in, oldest first: written, or removed. */
  readonly #waiting = new Set<string>();
  readonly #working = new SingleFlight(() => this.#work());
  #hasFailed = false;
  #isHeld = false;
  /** The disk is left alone until then: it is full, or cannot be written. */
  #again: Timer | undefined;
  #isClosed = false;

  constructor(options: CertificateCopiesOptions) {
    this.#options = options;
    this.#sealed = new SealedFiles(options.credential, 'tunnel copies of certificates');
  }

  /** Those of the last run. What cannot be opened is left out. Never rejects. */
  async load(take: (certificate: EdgeCertificate) => Promise<void>): Promise<void> {
    const { folder, logger } = this.#options;
    const files = (await this.#files()).filter((file) => FILE.test(file));
    let unreadable = 0;
    for (const file of files) {
      const certificate = this.#open(join(folder, file));
      if (certificate === null) unreadable += 1;
      else await take(certificate);
    }
    if (unreadable === 0) return;
    logger.warn({ folder, unreadable }, 'cannot decrypt local copies of certificates with the credential of this edge');
  }

  /** It came, changed or went: the disk follows. */
  changed(id: string): void {
    if (this.#isClosed) return;
    this.#waiting.add(id);
    this.#workOn();
  }

  /** While a snapshot is taken nothing is written: whoever waits for a certificate comes first. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (!isHeld) this.#workOn();
  }

  /** All files of others go: those of certificates that went while this edge was away, and what nobody can open. */
  async prune(ids: Iterable<string>): Promise<void> {
    const kept = new Set(Array.from(ids, fileOf));
    for (const file of await this.#files()) {
      const isOurs = FILE.test(file.replace(ASIDE, ''));
      if (isOurs && !kept.has(file.replace(ASIDE, ''))) await this.#remove(file);
    }
  }

  /** What waits is written, for a while. */
  async close(): Promise<void> {
    const { clock } = this.#options;
    let give: (() => void) | undefined;
    const late = new Promise<void>((resolve) => {
      give = resolve;
    });
    const timer = clock.setTimeout(() => give?.(), CERTIFICATE_COPIES_STOP_MS);
    await Promise.race([this.#working.current, late]);
    timer.cancel();
    this.#isClosed = true;
    this.#again?.cancel();
    this.#waiting.clear();
    await this.#working.current;
  }

  #workOn(): void {
    if (this.#isHeld || this.#isClosed || this.#again !== undefined) return;
    void this.#working.run();
  }

  async #work(): Promise<void> {
    // One at a time: nobody waits for them.
    for (const id of this.#waiting) {
      if (this.#isHeld) return;
      this.#waiting.delete(id);
      const certificate = this.#options.read(id);
      if (certificate === null) await this.#remove(fileOf(id));
      else if (!(await this.#write(fileOf(id), certificate))) return this.#tryLater(id);
    }
  }

  /** Behind all others: it may be the only one that cannot be written. */
  #tryLater(id: string): void {
    if (this.#isClosed) return;
    this.#waiting.add(id);
    this.#again = this.#options.clock.setTimeout(() => {
      this.#again = undefined;
      this.#workOn();
    }, CERTIFICATE_COPIES_AGAIN_MS);
  }

  async #write(file: string, certificate: EdgeCertificate): Promise<boolean> {
    const { folder } = this.#options;
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await chmod(folder, 0o700);
      await this.#sealed.write(join(folder, file), certificate);
      this.#hasFailed = false;
      return true;
    } catch (error) {
      this.#failed(error);
      return false;
    }
  }

  #open(path: string): EdgeCertificate | null {
    try {
      return edgeCertificate.parse(this.#sealed.read(path, CERTIFICATE_COPY_MAX_BYTES));
    } catch {
      return null;
    }
  }

  async #files(): Promise<readonly string[]> {
    try {
      return await readdir(this.#options.folder);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.#failed(error);
      return [];
    }
  }

  async #remove(file: string): Promise<void> {
    try {
      await rm(join(this.#options.folder, file), { force: true });
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Once, until it works again. */
  #failed(error: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    const { folder, logger } = this.#options;
    const reason = error instanceof Error ? error.message : String(error);
    logger.error(
      { folder, reason },
      'cannot save copies of certificates; some may be missing after a start without the platform',
    );
  }
}

/** Ids come over the link: none of them is a path. */
const fileOf = (id: string): string => `${sha256Hex(id).slice(0, 32)}.jwe`;
