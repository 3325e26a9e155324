// The session of this tab: its access token, kept in memory alone, renewed by the cookie that scripts cannot read.
import { Fault } from '@tunnel/errors';
import { lifetimeMs } from './access-token.ts';

/** `left`: logged out by the person. `ended`: the platform takes the session no more. `none`: there was none at the start. */
export type SignedOutBecause = 'none' | 'left' | 'ended';

export type SessionState =
  | { readonly phase: 'starting' }
  | { readonly phase: 'signed-in' }
  | { readonly phase: 'signed-out'; readonly because: SignedOutBecause };

export type SessionNews = 'signed-in' | 'signed-out';

/** What a session needs of the browser. */
export interface SessionWorld {
  /** POST /auth/refresh; rejects with a fault. */
  refresh(): Promise<string>;
  /** POST /auth/logout. */
  logOut(): Promise<void>;
  /** One at a time among all tabs. */
  alone<T>(work: () => Promise<T>): Promise<T>;
  after(ms: number, act: () => void): () => void;
  /** For the other tabs. */
  tell(news: SessionNews): void;
}

/** A token is renewed so long before its end. */
const RENEW_AHEAD_MS = 60_000;
const START_RETRY_MS = 2000;

const STARTING: SessionState = { phase: 'starting' };
const SIGNED_IN: SessionState = { phase: 'signed-in' };

export class Session {
  readonly #world: SessionWorld;
  readonly #listeners = new Set<() => void>();
  #state: SessionState = STARTING;
  #token = '';
  #renewing: Promise<string> | null = null;
  #cancelTimer: () => void = () => {};

  constructor(world: SessionWorld) {
    this.#world = world;
  }

  get state(): SessionState {
    return this.#state;
  }

  /** Empty while nobody is signed in. */
  get accessToken(): string {
    return this.#token;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Asks the cookie. A platform that is away is asked again until it says yes or no. */
  start(): void {
    this.renew().catch(() => {
      if (this.#state.phase === 'starting') this.#wait(START_RETRY_MS, () => this.start());
    });
  }

  /** Resolves once it is known whether somebody is signed in. */
  known(): Promise<SessionState> {
    if (this.#state.phase !== 'starting') return Promise.resolve(this.#state);
    return new Promise((resolve) => {
      const stop = this.subscribe(() => {
        if (this.#state.phase === 'starting') return;
        stop();
        resolve(this.#state);
      });
    });
  }

  /** After a login in this tab. */
  begin(token: string): void {
    this.#take(token);
    this.#world.tell('signed-in');
  }

  /** One renewal at a time serves all who ask. Rejects when refused, which ends the session, or when the platform is away. */
  renew(): Promise<string> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = null;
    });
    return this.#renewing;
  }

  /** The page forgets at once, whatever the platform says. */
  async leave(): Promise<void> {
    this.#end('left');
    this.#world.tell('signed-out');
    await this.#world.logOut();
  }

  /** What another tab did. */
  hear(news: SessionNews): void {
    if (news === 'signed-out') this.#end('left');
    else this.#follow().catch(() => {});
  }

  /** A renewal that was under way may have been sent before the cookie changed. */
  async #follow(): Promise<void> {
    await this.#renewing?.catch(() => {});
    if (this.#state.phase !== 'signed-in') await this.renew();
  }

  async #renew(): Promise<string> {
    const before = this.#token;
    try {
      const token = await this.#world.alone(() => this.#world.refresh());
      // Logged out, or in again, while the answer was on its way: that is newer.
      if (this.#token !== before) return this.#token;
      this.#take(token);
      return token;
    } catch (error) {
      if (isRefusal(error) && this.#token === before) this.#end(before === '' ? 'none' : 'ended');
      throw error;
    }
  }

  #take(token: string): void {
    this.#token = token;
    const life = lifetimeMs(token);
    this.#wait(Math.max(life - RENEW_AHEAD_MS, life / 2), () => void this.renew().catch(() => {}));
    this.#become(SIGNED_IN);
  }

  #end(because: SignedOutBecause): void {
    this.#token = '';
    this.#cancelTimer();
    if (this.#state.phase === 'signed-out') return;
    this.#become({ phase: 'signed-out', because });
  }

  #become(state: SessionState): void {
    if (this.#state === state) return;
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }

  #wait(ms: number, act: () => void): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#world.after(ms, act);
  }
}

/** The platform said no; everything else may pass. */
const isRefusal = (error: unknown): boolean => {
  const { status } = Fault.from(error);
  return status === 401 || status === 403;
};
