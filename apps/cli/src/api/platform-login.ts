// The login at a platform: kept in ~/.tunnel/session.json, and renewed for the calls that need it, by one process at a time.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { ProxyFor } from '@tunnel/client';
import type { PlatformClient } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Io } from '../io.ts';
import { oneAtATime } from '../one-at-a-time.ts';
import { fileFault, writePrivateFile } from '../private-files.ts';
import { type ProxyFlags, proxyOfAccount } from '../settings.ts';
import { checkPlatform, type PlatformEndpoint, platformClient } from './platform-api.ts';

export interface SavedLogin {
  readonly platform: PlatformEndpoint;
  readonly email: string;
  readonly refreshToken: string;
  readonly accessToken: string;
  /** When the access token runs out, in milliseconds since the epoch. */
  readonly accessUntil: number;
}

/** Where one is logged in, and the tokens of it. */
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

  /** null: there is none, or nothing that can be used as one. */
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

  /** Each refresh uses up the token of the one before. */
  exclusively<T>(action: () => Promise<T>): Promise<T> {
    return oneAtATime(this.path, this.#io, action);
  }
}

/** A file that was torn or written by hand is as good as none: one logs in again. */
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

/** The contract's; nothing inside the token is relied on. */
const ACCESS_TOKEN_MS = 15 * 60_000;
/** So long before its end an access token is renewed rather than tried. */
const ACCESS_MARGIN_MS = 30_000;

export const accessUntilFrom = (now: number): number => now + ACCESS_TOKEN_MS;

/** Calls to the platform as the one who is logged in: access is renewed when it has run out, by one process at a time. */
export class PlatformLogin {
  readonly #file: LoginFile;
  readonly #io: Pick<Io, 'clock'>;
  readonly #proxyFor: ProxyFor;
  #saved: SavedLogin;

  private constructor(file: LoginFile, saved: SavedLogin, io: Pick<Io, 'clock'>, proxyFor: ProxyFor) {
    this.#file = file;
    this.#saved = saved;
    this.#io = io;
    this.#proxyFor = proxyFor;
  }

  /** Throws when nobody is logged in here. */
  static open(io: Io, flags: ProxyFlags): PlatformLogin {
    const file = new LoginFile(io);
    return new PlatformLogin(file, known(file.read()), io, proxyOfAccount(flags, io));
  }

  get platformUrl(): string {
    return this.#saved.platform.url;
  }

  /** What `ask` was refused for a lack of access was not done, so that it can be asked again. */
  async call<T>(ask: (client: PlatformClient) => Promise<T>, withinMs?: number): Promise<T> {
    if (!this.#isFresh(this.#saved)) await this.#renew();
    try {
      return await ask(this.#client(withinMs));
    } catch (error) {
      if (!isAccessRefused(error)) throw error;
    }
    await this.#renew();
    try {
      return await ask(this.#client(withinMs));
    } catch (error) {
      throw isAccessRefused(error) ? ended(this.#saved) : error;
    }
  }

  /** Another process may have renewed it meanwhile: then its tokens are taken, and ours are not shown again. */
  async #renew(): Promise<void> {
    const before = this.#saved;
    await this.#file.exclusively(async () => {
      const found = known(this.#file.read());
      this.#saved = found;
      if (found.accessToken !== before.accessToken && this.#isFresh(found)) return;
      this.#saved = await this.#refresh(found);
      this.#file.write(this.#saved);
    });
  }

  async #refresh(saved: SavedLogin): Promise<SavedLogin> {
    try {
      const { body, refreshToken } = await platformClient(checkPlatform(saved.platform), this.#proxyFor).refresh(
        saved.refreshToken,
      );
      return {
        ...saved,
        refreshToken: refreshToken ?? saved.refreshToken,
        accessToken: body.access_token,
        accessUntil: accessUntilFrom(this.#io.clock.now()),
      };
    } catch (error) {
      throw error instanceof Fault && error.code === 'REFRESH_INVALID' ? ended(saved) : error;
    }
  }

  #client(withinMs?: number): PlatformClient {
    return platformClient(checkPlatform(this.#saved.platform), this.#proxyFor, this.#saved.accessToken, withinMs);
  }

  #isFresh({ accessUntil }: SavedLogin): boolean {
    const left = accessUntil - this.#io.clock.now();
    // More than it can have: the clock was set back, or the file is somebody's own.
    return left > ACCESS_MARGIN_MS && left <= ACCESS_TOKEN_MS;
  }
}

const known = (saved: SavedLogin | null): SavedLogin => {
  if (saved === null) throw new Fault('CLIENT_LOGIN_NEEDED', { reason: 'Not logged in.' });
  return saved;
};

const ended = ({ platform }: SavedLogin): Fault =>
  new Fault('CLIENT_LOGIN_NEEDED', { reason: `Your session at ${platform.url} has ended.` });

const isAccessRefused = (error: unknown): boolean => error instanceof Fault && error.code === 'ACCESS_TOKEN_INVALID';
