// The user's sign-in at a platform. Access tokens are renewed when a call needs a token, by one process at a time.
import type { ProxyFor } from '@tunnel/client';
import type { PlatformClient } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { type ProxyFlags, proxyOfAccount } from '../config/settings.ts';
import type { Io } from '../io/io.ts';
import { LoginFile, type SavedLogin } from './login-file.ts';
import { checkPlatform, platformClient } from './platform-api.ts';

/** Lifetime of an access token according to the platform's contract. The client does not look inside the token. */
const ACCESS_TOKEN_MS = 15 * 60_000;
/** Remaining lifetime below which an access token is renewed instead of used. */
const ACCESS_MARGIN_MS = 30_000;

export const accessUntilFrom = (now: number): number => now + ACCESS_TOKEN_MS;

/** Calls the platform as the signed-in user. Renews an expired access token; only one process renews at a time. */
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

  /** Opens the saved sign-in. Throws if the user is not signed in on this computer. */
  static open(io: Io, flags: ProxyFlags): PlatformLogin {
    const file = new LoginFile(io);
    return new PlatformLogin(file, known(file.read()), io, proxyOfAccount(flags, io));
  }

  get platformUrl(): string {
    return this.#saved.platform.url;
  }

  /**
   * Runs `ask` with a valid access token. If the token is rejected, the platform has done nothing, so `ask` runs again with a renewed
   * token.
   */
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

  /**
   * Renews the access token. If another process has just renewed the token, the saved tokens are used, and the outdated refresh token is
   * not sent again.
   */
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
    // A remaining lifetime above the maximum means that the clock was set back, or that the file was written by hand.
    return left > ACCESS_MARGIN_MS && left <= ACCESS_TOKEN_MS;
  }
}

const known = (saved: SavedLogin | null): SavedLogin => {
  if (saved === null) throw new Fault('CLIENT_LOGIN_NEEDED', { reason: 'not signed in.' });
  return saved;
};

const ended = ({ platform }: SavedLogin): Fault =>
  new Fault('CLIENT_LOGIN_NEEDED', { reason: `your session at ${platform.url} has ended.` });

const isAccessRefused = (error: unknown): boolean => error instanceof Fault && error.code === 'ACCESS_TOKEN_INVALID';
