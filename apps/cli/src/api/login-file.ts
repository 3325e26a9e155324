// The file ~/.tunnel/session.json: the platform where the user is signed in, and the tokens of the session.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Io } from '../io/io.ts';
import { fileFault, writePrivateFile } from '../io/private-files.ts';
import { withSingleInstanceLock } from '../io/single-instance-lock.ts';
import type { PlatformEndpoint } from './platform-api.ts';

export interface SavedLogin {
  readonly platform: PlatformEndpoint;
  readonly email: string;
  readonly refreshToken: string;
  readonly accessToken: string;
  /** Expiry of the access token, in milliseconds since the epoch. */
  readonly accessUntil: number;
}

/** The saved sign-in: platform, account and session tokens. */
export class LoginFile {
  readonly path: string;
  readonly #io: Pick<Io, 'clock'>;

  constructor(io: Pick<Io, 'home' | 'clock'>) {
    this.path = join(io.home, '.tunnel', 'session.json');
    this.#io = io;
  }

  exists(): boolean {
    return existsSync(this.path);
  }

  /** Returns the saved sign-in. Returns null if the file does not exist or has no usable content. */
  read(): SavedLogin | null {
    let text: string;
    try {
      text = readFileSync(this.path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw fileFault(this.path, error);
    }
    return parseLogin(text);
  }

  write({ platform, email, refreshToken, accessToken, accessUntil }: SavedLogin): void {
    const value = {
      version: 1,
      platform_url: platform.url,
      ...(platform.clearTextAllowed ? { no_tls: true } : {}),
      ...(platform.caFile === undefined ? {} : { ca_file: platform.caFile }),
      ...(platform.insecure ? { insecure: true } : {}),
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

  /** Runs an action while no other process uses the file, because each token refresh invalidates the previous refresh token. */
  exclusively<T>(action: () => Promise<T>): Promise<T> {
    return withSingleInstanceLock(this.path, this.#io, action);
  }
}

/** Parses the content of the file. Returns null for a torn or hand-written file: the user signs in again, as without a file. */
const parseLogin = (text: string): SavedLogin | null => {
  try {
    const value = JSON.parse(text) as Record<string, unknown>;
    const { platform_url: url, email, refresh_token: refreshToken, access_token: accessToken, ca_file: caFile } = value;
    const accessUntil = Date.parse(String(value['access_token_until']));
    if (value['version'] !== 1) return null;
    if (typeof url !== 'string' || typeof email !== 'string') return null;
    if (typeof refreshToken !== 'string' || typeof accessToken !== 'string') return null;
    const platform = {
      url,
      clearTextAllowed: value['no_tls'] === true,
      caFile: typeof caFile === 'string' ? caFile : undefined,
      insecure: value['insecure'] === true,
    };
    return { platform, email, refreshToken, accessToken, accessUntil: Number.isNaN(accessUntil) ? 0 : accessUntil };
  } catch {
    return null;
  }
};
