// The session of this browser tab. The access token exists in memory only, and a cookie that scripts cannot read renews the token.
import type { PlatformClient } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';

/**
 * Reason why a tab is signed out. `left`: the user signed out. `ended`: the platform no longer accepts the session. `none`: the tab
 * started without a session. `deleted`: the account was deleted.
 */
export type SignedOutReason = 'none' | 'left' | 'ended' | 'deleted';

export type SessionState =
  | { readonly phase: 'starting' }
  | { readonly phase: 'signed-in' }
  | { readonly phase: 'signed-out'; readonly reason: SignedOutReason };

export type SessionMessage = 'signed-in' | 'signed-out';

/** Browser functions used by a session: requests with the cookie, a lock and messages across tabs, timers, and storage. */
export interface SessionEnvironment {
  /** Sends POST /auth/refresh and returns a new access token. Rejects with a fault. */
  refresh(): Promise<string>;
  /** Sends POST /auth/logout. */
  logOut(): Promise<void>;
  /** Runs the work while holding a lock shared by all tabs, so that only a single tab works at a time. */
  withLock<T>(work: () => Promise<T>): Promise<T>;
  after(ms: number, act: () => void): () => void;
  /** Sends a message to the other tabs. */
  post(message: SessionMessage): void;
  /** Returns whether this browser remembers a sign-in without a later sign-out. */
  wasSignedIn(): boolean;
  remember(isSignedIn: boolean): void;
}

/** Time before expiry at which an access token is renewed. */
const RENEW_AHEAD_MS = 60_000;
const START_RETRY_MS = 2000;

const STARTING: SessionState = { phase: 'starting' };
const SIGNED_IN: SessionState = { phase: 'signed-in' };

export class Session {
  readonly #environment: SessionEnvironment;
  readonly #listeners = new Set<() => void>();
  #state: SessionState = STARTING;
  #token = '';
  #renewing: Promise<string> | null = null;
  #cancelTimer: () => void = () => {};

  constructor(environment: SessionEnvironment) {
    this.#environment = environment;
  }

  get state(): SessionState {
    return this.#state;
  }

  /** Access token of the current session. Empty while signed out. */
  get accessToken(): string {
    return this.#token;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /**
   * Requests an access token for the cookie, which scripts cannot read, if this browser remembers a sign-in. Without the cookie the
   * platform would reject the request, and the browser would log an error in its console. The request is retried until the platform
   * accepts or rejects it.
   */
  start(): void {
    if (!this.#environment.wasSignedIn()) {
      this.#end('none');
      return;
    }
    this.renew().catch(() => {
      if (this.#state.phase === 'starting') this.#wait(START_RETRY_MS, () => this.start());
    });
  }

  /** Resolves with the session's state as soon as the tab knows whether a user is signed in. */
  ready(): Promise<SessionState> {
    if (this.#state.phase !== 'starting') return Promise.resolve(this.#state);
    return new Promise((resolve) => {
      const stop = this.subscribe(() => {
        if (this.#state.phase === 'starting') return;
        stop();
        resolve(this.#state);
      });
    });
  }

  /** Stores the access token after a sign-in in this tab, and notifies the other tabs. */
  signIn(token: string): void {
    this.#take(token);
    this.#environment.post('signed-in');
  }

  /**
   * Renews the access token. Concurrent callers share one renewal. Rejects if the platform refuses, which ends the session, or if the
   * platform is unreachable.
   */
  renew(): Promise<string> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = null;
    });
    return this.#renewing;
  }

  /** Signs out. The tab drops the token immediately, before the platform responds to the request. */
  async signOut(): Promise<void> {
    this.#end('left');
    this.#environment.post('signed-out');
    await this.#environment.logOut();
  }

  /** Ends the session after the account, including its cookie, was deleted. */
  accountDeleted(): void {
    this.#end('deleted');
    this.#environment.post('signed-out');
  }

  /** Handles a message from another tab about a sign-in or sign-out. */
  receive(message: SessionMessage): void {
    if (message === 'signed-out') this.#end('left');
    else this.#follow().catch(() => {});
  }

  /**
   * Takes over the session of another tab. A renewal already in progress is awaited first, because its request may have been sent before
   * the cookie changed.
   */
  async #follow(): Promise<void> {
    await this.#renewing?.catch(() => {});
    if (this.#state.phase !== 'signed-in') await this.renew();
  }

  async #renew(): Promise<string> {
    const before = this.#token;
    try {
      const token = await this.#environment.withLock(() => this.#environment.refresh());
      // If the user signed out, or in again, while the response was on its way, the newer state wins.
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
    this.#environment.remember(true);
    this.#wait(Math.max(life - RENEW_AHEAD_MS, life / 2), () => void this.renew().catch(() => {}));
    this.#become(SIGNED_IN);
  }

  #end(reason: SignedOutReason): void {
    this.#token = '';
    this.#environment.remember(false);
    this.#cancelTimer();
    // A request may have found out already that the session has ended. Only the reason `deleted` replaces an earlier reason, because it
    // explains the sign-out.
    if (this.#state.phase === 'signed-out' && reason !== 'deleted') return;
    this.#become({ phase: 'signed-out', reason });
  }

  #become(state: SessionState): void {
    if (this.#state === state) return;
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }

  #wait(ms: number, act: () => void): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#environment.after(ms, act);
  }
}

/** Returns whether the platform rejected the session (401 or 403). Every other error may be temporary. */
const isRefusal = (error: unknown): boolean => {
  const { status } = Fault.from(error);
  return status === 401 || status === 403;
};

/** Lifetime assumed for an access token that cannot be decoded. */
const USUAL_MS = 15 * 60_000;

/**
 * Lifetime of an access token in ms, from issue to expiry. Both times come from the token, so the result does not depend on this
 * computer's clock. The token is not verified here: only the platform does so.
 */
export const lifetimeMs = (token: string): number => {
  try {
    const text = atob((token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/'));
    const { iat, exp } = JSON.parse(text) as { iat?: unknown; exp?: unknown };
    const ms = (Number(exp) - Number(iat)) * 1000;
    return ms > 0 ? ms : USUAL_MS;
  } catch {
    return USUAL_MS;
  }
};

const CHANNEL = 'tunnel-session';
const SIGNED_IN_KEY = 'signed-in';

interface TabChannel {
  post(message: SessionMessage): void;
  onMessage(receive: (message: SessionMessage) => void): void;
}

export const openTabChannel = (): TabChannel => {
  const channel = new BroadcastChannel(CHANNEL);
  return {
    post: (message) => channel.postMessage(message),
    onMessage: (receive) => {
      channel.onmessage = ({ data }: MessageEvent<unknown>) => {
        if (data === 'signed-in' || data === 'signed-out') receive(data);
      };
    },
  };
};

/** Creates the session's environment in a browser: locks and messages between tabs, timers, and the two requests that carry the cookie. */
export const createBrowserEnvironment = (client: PlatformClient, tabs: TabChannel): SessionEnvironment => ({
  refresh: async () => (await client.refresh()).body.access_token,
  logOut: () => client.logOut(),
  withLock: withTabLock,
  after: (ms, act) => {
    const timer = setTimeout(act, ms);
    return () => clearTimeout(timer);
  },
  post: (message) => tabs.post(message),
  wasSignedIn: () => {
    try {
      return localStorage.getItem(SIGNED_IN_KEY) !== null;
    } catch {
      // Storage is disabled in this browser, so only a request to the platform can tell.
      return true;
    }
  },
  remember: (isSignedIn) => {
    try {
      if (isSignedIn) localStorage.setItem(SIGNED_IN_KEY, 'yes');
      else localStorage.removeItem(SIGNED_IN_KEY);
    } catch {
      // Storage is disabled in this browser, so the sign-in is not remembered.
    }
  },
});

/**
 * Runs the work under a lock shared by all tabs. Browsers offer no locks to pages over plain http; there the platform tolerates two
 * concurrent renewals.
 */
const withTabLock = async <T>(work: () => Promise<T>): Promise<T> => {
  if (!('locks' in navigator)) return work();
  return (await navigator.locks.request(CHANNEL, work)) as T;
};
