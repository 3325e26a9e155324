// ~/.tunnel/session.json: where one is logged in, and the tokens of it.
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { takeLock } from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import type { Io } from '../io.ts';
import { fileFault, writePrivateFile } from '../write-private-file.ts';
import type { PlatformPlace } from './platform-address.ts';

export interface SavedSession {
  readonly place: PlatformPlace;
  readonly email: string;
  readonly refreshToken: string;
  readonly accessToken: string;
  /** When the access token runs out, in milliseconds since the epoch. */
  readonly accessUntil: number;
}

/** A holder asks the platform once; a request gives up after 10 s. */
const LOCK_PATIENCE_MS = 15_000;
const LOCK_LOOK_MS = 50;
/** Of a holder on another machine that shares the home folder. */
const FOREIGN_LOCK_STALE_MS = 60_000;

export class SessionFile {
  readonly path: string;
  readonly #io: Pick<Io, 'clock'>;

  constructor(io: Pick<Io, 'home' | 'clock'>) {
    this.path = join(io.home, '.tunnel', 'session.json');
    this.#io = io;
  }

  exists(): boolean {
    return existsSync(this.path);
  }

  /** null: there is none, or nothing that can be used as one. */
  read(): SavedSession | null {
    let text: string;
    try {
      text = readFileSync(this.path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw fileFault(this.path, error);
    }
    return parseSession(text);
  }

  write({ place, email, refreshToken, accessToken, accessUntil }: SavedSession): void {
    const value = {
      version: 1,
      platform_url: place.url,
      ...(place.clearTextAllowed ? { no_tls: true } : {}),
      ...(place.caFile === undefined ? {} : { ca_file: place.caFile }),
      ...(place.insecure ? { insecure: true } : {}),
      email,
      refresh_token: refreshToken,
      access_token: accessToken,
      access_token_until: new Date(accessUntil).toISOString(),
    };
    writePrivateFile(this.path, `${JSON.stringify(value, null, 2)}\n`);
  }

  remove(): void {
    try {
      rmSync(this.path, { force: true });
    } catch (error) {
      throw fileFault(this.path, error);
    }
  }

  /** One process at a time: each refresh uses up the token of the one before. */
  async exclusively<T>(action: () => Promise<T>): Promise<T> {
    const lock = await this.#lock();
    try {
      return await action();
    } finally {
      lock.release();
    }
  }

  async #lock(): Promise<{ release(): void }> {
    const file = `${this.path}.lock`;
    const { clock } = this.#io;
    const giveUpAt = clock.monotonic() + LOCK_PATIENCE_MS;
    for (;;) {
      const lock = take(file);
      if (lock !== null) return lock;
      if (clock.monotonic() >= giveUpAt) {
        throw new Fault('CLIENT_FILE', { file, reason: 'another tunnel process holds it' });
      }
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, LOCK_LOOK_MS));
    }
  }
}

const take = (file: string) => {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    return takeLock(file, FOREIGN_LOCK_STALE_MS);
  } catch (error) {
    throw fileFault(file, error);
  }
};

/** A file that was torn or written by hand is as good as none: one logs in again. */
const parseSession = (text: string): SavedSession | null => {
  try {
    const value = JSON.parse(text) as Record<string, unknown>;
    const { platform_url: url, email, refresh_token: refreshToken, access_token: accessToken, ca_file: caFile } = value;
    const accessUntil = Date.parse(String(value['access_token_until']));
    if (value['version'] !== 1) return null;
    if (typeof url !== 'string' || typeof email !== 'string') return null;
    if (typeof refreshToken !== 'string' || typeof accessToken !== 'string') return null;
    const place = {
      url,
      clearTextAllowed: value['no_tls'] === true,
      caFile: typeof caFile === 'string' ? caFile : undefined,
      insecure: value['insecure'] === true,
    };
    return { place, email, refreshToken, accessToken, accessUntil: Number.isNaN(accessUntil) ? 0 : accessUntil };
  } catch {
    return null;
  }
};
