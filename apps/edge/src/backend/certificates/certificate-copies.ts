// Copies of the platform's certificates on the edge's disk, for a start while the platform is unreachable. Each copy is encrypted with a
// key that is derived from the edge's credential and never stored, so a stolen folder is worthless without the credential.
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

/** Maximum size of a copy. A larger file was not written by the edge. */
const CERTIFICATE_COPY_MAX_BYTES = 512 * 1024;
/** Pause after a failed write, because a full disk usually stays full for a while. */
export const CERTIFICATE_COPIES_AGAIN_MS = 60_000;
/**
 * Maximum time for writing the waiting copies when the edge stops. The platform sends the remaining certificates again at the next start.
 */
const CERTIFICATE_COPIES_STOP_MS = 3000;

export interface CertificateCopiesOptions {
  readonly folder: string;
  readonly credential: Secret;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Returns the certificate at the time of writing. Null if the certificate was removed meanwhile. */
  readonly read: (id: string) => EdgeCertificate | null;
}

const FILE = /^[\da-f]{32}\.jwe$/;

export class CertificateCopies {
  readonly #options: CertificateCopiesOptions;
  readonly #sealed: SealedFiles;
  /** Ids of certificates with a copy to write or delete, oldest first. */
  readonly #waiting = new Set<string>();
  readonly #working = new SingleFlight(() => this.#work());
  #hasFailed = false;
  #isHeld = false;
  /** Pause after a failed write. No other write starts before the timer ends. */
  #again: Timer | undefined;
  #isClosed = false;

  constructor(options: CertificateCopiesOptions) {
    this.#options = options;
    this.#sealed = new SealedFiles(options.credential, 'tunnel copies of certificates');
  }

  /** Reads the copies of the last run. Skips copies that cannot be decrypted. Never rejects. */
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

  /** Called when a certificate was added, changed or removed. Schedules the update of its copy. */
  changed(id: string): void {
    if (this.#isClosed) return;
    this.#waiting.add(id);
    this.#workOn();
  }

  /** Pauses or resumes writing. Paused while a snapshot is loaded, because visitors waiting for a certificate have priority. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (!isHeld) this.#workOn();
  }

  /**
   * Deletes all copies except those of `ids`: copies of certificates removed while the edge was stopped, and copies that cannot be
   * decrypted.
   */
  async prune(ids: Iterable<string>): Promise<void> {
    const kept = new Set(Array.from(ids, fileOf));
    for (const file of await this.#files()) {
      const isOurs = FILE.test(file.replace(ASIDE, ''));
      if (isOurs && !kept.has(file.replace(ASIDE, ''))) await this.#remove(file);
    }
  }

  /** Waits a limited time until the remaining certificate copies are written or deleted, then stops. */
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
    // Copies are written one after the other, because no visitor waits for a copy.
    for (const id of this.#waiting) {
      if (this.#isHeld) return;
      this.#waiting.delete(id);
      const certificate = this.#options.read(id);
      if (certificate === null) await this.#remove(fileOf(id));
      else if (!(await this.#write(fileOf(id), certificate))) return this.#tryLater(id);
    }
  }

  /** Retries a failed write after a pause. The certificate goes to the end of the queue, in case all other copies can be written. */
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

  /** Logs the first failed write of a copy. Further failures are not logged until a write succeeds. */
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

/** File name of a copy. The id is hashed, because an id from the platform must not be used as a path. */
const fileOf = (id: string): string => `${sha256Hex(id).slice(0, 32)}.jwe`;
