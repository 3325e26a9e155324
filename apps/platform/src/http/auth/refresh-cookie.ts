// The cookie that carries the refresh token, the one that ties it to the browser it was given to, and whether the page that sends
// them is one of ours.

import { type ServerConfig } from '@tunnel/config/server';
import { isLoopbackHost } from '@tunnel/rules/net';
import { equalInConstantTime } from '@tunnel/runtime';
import type { Context } from 'hono';
import { deleteCookie, setCookie } from 'hono/cookie';
import { LIMITS } from '../../limits.ts';
import type { PlatformEnv } from '../shared/platform-env.ts';
import { cookieValues } from './cookie-values.ts';

export const REFRESH_COOKIE = 'refresh_token';
const PATH = '/auth';
/** Browsers take a cookie of this prefix only from its own host, over https and without a domain: no page of a tunnel can set it. */
export const BINDING_COOKIE = '__Host-refresh-binding';
const BINDING_PATH = '/';

/** Ours have 43. */
const TOKEN_MAX_CHARACTERS = 100;
/** Tokens in one request that a log-out ends. */
const LOGGED_OUT_MAX = 10;

/** Whether a family of refresh tokens may be used by the request at hand. */
export type FamilyCheck = (familyId: string) => boolean;

/**
 * Out of reach of scripts, and the token is sent to /auth only. Where the platform is at https, a second cookie belongs to the
 * token's family.
 */
export class RefreshCookie {
  readonly #secure: boolean;
  readonly #bindingOf: (familyId: string) => string;

  /** `bindingOf`: the value of a family's second cookie. */
  constructor(publicUrl: string, bindingOf: (familyId: string) => string) {
    this.#secure = publicUrl.startsWith('https:');
    this.#bindingOf = bindingOf;
  }

  /**
   * null: there is none, nothing that we ever gave, or two. A page of a tunnel below our domain can set one for the domain, and a browser sends
   * both without saying which is whose: whoever took the other one would be logged in as its owner, and store there what is theirs.
   */
  read(context: Context<PlatformEnv>): string | null {
    const shown = cookieValues(context, REFRESH_COOKIE);
    const [token = ''] = shown;
    return shown.length !== 1 || !isTokenLike(token) ? null : token;
  }

  /** Of a log-out: whoever's they are, none is used again. */
  readAll(context: Context<PlatformEnv>): readonly string[] {
    return cookieValues(context, REFRESH_COOKIE).filter(isTokenLike).slice(0, LOGGED_OUT_MAX);
  }

  /**
   * A page of a tunnel can also plant a refresh token in a browser that has none. So a browser at https shows the second cookie as well,
   * which such a page cannot set. Programs keep their token themselves, and show only that.
   */
  familyCheck(context: Context<PlatformEnv>): FamilyCheck {
    if (!this.#secure || !isFromBrowser(context.req.header())) return () => true;
    const [shown = '', ...more] = cookieValues(context, BINDING_COOKIE);
    return (familyId) => more.length === 0 && equalInConstantTime(shown, this.#bindingOf(familyId));
  }

  write(context: Context<PlatformEnv>, { refreshToken, familyId }: { refreshToken: string; familyId: string }): void {
    setCookie(context, REFRESH_COOKIE, refreshToken, { ...this.#attributes(PATH), maxAge: LIMITS.REFRESH_TOKEN_SECS });
    if (!this.#secure) return;
    const lasting = { ...this.#attributes(BINDING_PATH), maxAge: LIMITS.REFRESH_TOKEN_SECS };
    setCookie(context, BINDING_COOKIE, this.#bindingOf(familyId), lasting);
  }

  clear(context: Context<PlatformEnv>): void {
    deleteCookie(context, REFRESH_COOKIE, this.#attributes(PATH));
    if (this.#secure) deleteCookie(context, BINDING_COOKIE, this.#attributes(BINDING_PATH));
  }

  #attributes(path: string) {
    return { httpOnly: true, sameSite: 'Lax' as const, path, secure: this.#secure };
  }
}

/**
 * Browsers name the origin in every POST, and newer ones say more in Sec-Fetch-*. `Sec-Fetch-Mode: cors` alone is no browser: Node.js
 * sends that with each fetch.
 */
export const isFromBrowser = (headers: Readonly<Record<string, string>>): boolean =>
  Object.entries(headers).some(([header, value]) => {
    const name = header.toLowerCase();
    if (name === 'sec-fetch-mode') return value !== 'cors';
    return name === 'origin' || name.startsWith('sec-fetch-');
  });

const isTokenLike = (token: string): boolean => token !== '' && token.length <= TOKEN_MAX_CHARACTERS;

type Settings = Pick<ServerConfig['platform'], 'host' | 'public_url'>;

/**
 * Whether a request comes from a page of ours. A browser says so in Origin; programs send none. It matters where a cookie
 * alone is enough, because tunnels may live on the same site as we do and SameSite does not keep them out. `port`: the one
 * that is listened on.
 */
export const createOwnOriginCheck = (
  settings: Settings,
  port: () => number,
): ((origin: string | undefined) => boolean) => {
  const published = new URL(settings.public_url).origin;
  const local = isLoopbackHost(settings.host);
  return (origin) => {
    if (origin === undefined || origin === published) return true;
    // Whoever tries it out at home types one or the other.
    return local && (origin === originOn('localhost', port()) || origin === originOn('127.0.0.1', port()));
  };
};

/** As browsers write it: without the port that http has anyway. */
const originOn = (host: string, port: number): string => new URL(`http://${host}:${port}`).origin;
