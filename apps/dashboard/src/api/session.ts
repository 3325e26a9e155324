// The session of this tab: its access token, kept in memory alone, renewed by the cookie that scripts cannot read.
import type { PlatformClient } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';

/** `left`: logged out by the person. `ended`: the platform takes the session no more. `none`: there was none at the start. `deleted`: the account is gone. */
export type SignedOutReason = 'none' | 'left' | 'ended' | 'deleted';

export type SessionState =
  | { readonly phase: 'starting' }
  | { readonly phase: 'signed-in' }
  | { readonly phase: 'signed-out'; readonly reason: SignedOutReason };

export type SessionMessage = 'signed-in' | 'signed-out';

/** What a session needs of the browser. */
export interface SessionEnvironment {
  /** POST /auth/refresh; rejects with a fault. */
  refresh(): Promise<string>;
  /** POST /auth/logout. */
  logOut(): Promise<void>;
  /** One at a time among all tabs. */
  withLock<T>(work: () => Promise<T>): Promise<T>;
  after(ms: number, act: () => void): () => void;
  /** For the other tabs. */
  post(message: SessionMessage): void;
  /** Whether this browser remembers a sign-in that no sign-out followed. */
  wasSignedIn(): boolean;
  remember(isSignedIn: boolean): void;
}

/** A token is renewed so long before its end. */
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

  /** Empty while nobody is signed in. */
  get accessToken(): string {
    return this.#token;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /**
   * Requests a token for the cookie, which scripts cannot read, if this browser remembers a sign-in. Without one the platform would reject
   * the request, and the browser would log an error in its console. The request is retried until the platform accepts or rejects it.
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

  /** Resolves once it is known whether somebody is signed in. */
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

  /** After a login in this tab. */
  signIn(token: string): void {
    this.#take(token);
    this.#environment.post('signed-in');
  }

  /** One renewal at a time serves all who ask. Rejects when refused, which ends the session, or when the platform is away. */
  renew(): Promise<string> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = null;
    });
    return this.#renewing;
  }

  /** The page forgets at once, whatever the platform says. */
  async signOut(): Promise<void> {
    this.#end('left');
    this.#environment.post('signed-out');
    await this.#environment.logOut();
  }

  /** The account is gone, and its cookie with it. */
  accountDeleted(): void {
    this.#end('deleted');
    this.#environment.post('signed-out');
  }

  /** What another tab did. */
  receive(message: SessionMessage): void {
    if (message === 'signed-out') this.#end('left');
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
      const token = await this.#environment.withLock(() => this.#environment.refresh());
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
    this.#environment.remember(true);
    this.#wait(Math.max(life - RENEW_AHEAD_MS, life / 2), () => void this.renew().catch(() => {}));
    this.#become(SIGNED_IN);
  }

  #end(reason: SignedOutReason): void {
    this.#token = '';
    this.#environment.remember(false);
    this.#cancelTimer();
    // A page that asked meanwhile may have learned already that the session is no more; that the account is gone says why.
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

/** The platform said no; everything else may pass. */
const isRefusal = (error: unknown): boolean => {
  const { status } = Fault.from(error);
  return status === 401 || status === 403;
};

/** Of a token that cannot be read. */
const USUAL_MS = 15 * 60_000;

/** The whole life of an access token, which does not depend on what this machine takes for the time. Whether it is good is the platform's to say. */
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

/** The browser as a session uses it: locks and messages between tabs, timers, and the two calls that the cookie goes with. */
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
      // Storage is disabled in this browser.
    }
  },
});

/** Pages over plain http have no locks; the platform then forgives two renewals at once. */
const withTabLock = async <T>(work: () => Promise<T>): Promise<T> => {
  if (!('locks' in navigator)) return work();
  return (await navigator.locks.request(CHANNEL, work)) as T;
};
