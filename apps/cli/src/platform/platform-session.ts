// Calls to the platform as the one who is logged in: access is renewed when it has run out, by one process at a time.
import type { PlatformClient } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Io } from '../io.ts';
import { checkPlace, platformClient } from './platform-address.ts';
import { type SavedSession, SessionFile } from './session-file.ts';

/** The contract's; nothing inside the token is relied on. */
const ACCESS_TOKEN_MS = 15 * 60_000;
/** So long before its end an access token is renewed rather than tried. */
const ACCESS_MARGIN_MS = 30_000;

export const accessUntilFrom = (now: number): number => now + ACCESS_TOKEN_MS;

export class PlatformSession {
  readonly #file: SessionFile;
  readonly #io: Pick<Io, 'clock'>;
  #saved: SavedSession;

  private constructor(file: SessionFile, saved: SavedSession, io: Pick<Io, 'clock'>) {
    this.#file = file;
    this.#saved = saved;
    this.#io = io;
  }

  /** Throws when nobody is logged in here. */
  static open(io: Pick<Io, 'home' | 'clock'>): PlatformSession {
    const file = new SessionFile(io);
    return new PlatformSession(file, known(file.read()), io);
  }

  get platformUrl(): string {
    return this.#saved.place.url;
  }

  /** What `ask` was refused for a lack of access was not done, so that it can be asked again. */
  async call<T>(ask: (client: PlatformClient) => Promise<T>): Promise<T> {
    if (!this.#isFresh(this.#saved)) await this.#renew();
    try {
      return await ask(this.#client());
    } catch (error) {
      if (!isAccessRefused(error)) throw error;
    }
    await this.#renew();
    try {
      return await ask(this.#client());
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

  async #refresh(saved: SavedSession): Promise<SavedSession> {
    try {
      const { body, refreshToken } = await platformClient(checkPlace(saved.place)).refresh(saved.refreshToken);
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

  #client(): PlatformClient {
    return platformClient(checkPlace(this.#saved.place), this.#saved.accessToken);
  }

  #isFresh({ accessUntil }: SavedSession): boolean {
    const left = accessUntil - this.#io.clock.now();
    // More than it can have: the clock was set back, or the file is somebody's own.
    return left > ACCESS_MARGIN_MS && left <= ACCESS_TOKEN_MS;
  }
}

const known = (saved: SavedSession | null): SavedSession => {
  if (saved === null) throw new Fault('CLIENT_LOGIN_NEEDED', { reason: 'not logged in' });
  return saved;
};

const ended = ({ place }: SavedSession): Fault =>
  new Fault('CLIENT_LOGIN_NEEDED', { reason: `the session at ${place.url} has ended` });

const isAccessRefused = (error: unknown): boolean => error instanceof Fault && error.code === 'ACCESS_TOKEN_INVALID';
