// Cookies of a session: the refresh token, and a second cookie that binds the token to a browser. Also checks whether a request comes
// from the platform's own pages.

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
/**
 * Name of the binding cookie. Browsers accept a cookie with the prefix `__Host-` only from its own host, over https and without a domain,
 * so no page of a tunnel can set the cookie.
 */
export const BINDING_COOKIE = '__Host-refresh-binding';
const BINDING_PATH = '/';

/** Maximum length of a refresh token in a cookie. Valid tokens have 43 characters. */
const TOKEN_MAX_CHARACTERS = 100;
/** Maximum number of tokens in a request that a sign-out ends. */
const LOGGED_OUT_MAX = 10;

/** Returns true if the current request may use the family of refresh tokens. */
export type FamilyCheck = (familyId: string) => boolean;

/**
 * Reads and writes the session cookies. Scripts cannot read the cookies, and browsers send the token only to /auth. If the platform uses
 * https, a second cookie is bound to the token's family.
 */
export class RefreshCookie {
  readonly #secure: boolean;
  readonly #bindingOf: (familyId: string) => string;

  /** `bindingOf` returns the value of the binding cookie for a family. */
  constructor(publicUrl: string, bindingOf: (familyId: string) => string) {
    this.#secure = publicUrl.startsWith('https:');
    this.#bindingOf = bindingOf;
  }

  /**
   * Returns the refresh token. Null without a token, with a text that cannot be a token, or with two tokens. A page of a tunnel below the
   * server's domain can set a cookie for the domain, and browsers send both cookies without their origin. With the wrong cookie, the
   * visitor would be signed in to an attacker's account and store private data there.
   */
  read(context: Context<PlatformEnv>): string | null {
    const shown = cookieValues(context, REFRESH_COOKIE);
    const [token = ''] = shown;
    return shown.length !== 1 || !isTokenLike(token) ? null : token;
  }

  /** Returns all refresh tokens in the request. A sign-out ends the sessions of all tokens, whatever their origin. */
  readAll(context: Context<PlatformEnv>): readonly string[] {
    return cookieValues(context, REFRESH_COOKIE).filter(isTokenLike).slice(0, LOGGED_OUT_MAX);
  }

  /**
   * Returns the check of the binding cookie. A page of a tunnel can also plant a refresh token in a browser without a session. Browsers
   * on https must therefore send the binding cookie, which such a page cannot set. Programs store the token themselves and send only the
   * token.
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
 * Returns true if the request comes from a browser. Browsers send Origin with every POST, and newer browsers also send Sec-Fetch-*
 * headers. `Sec-Fetch-Mode: cors` alone does not indicate a browser, because Node.js sends it with every fetch.
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
 * Creates a check of whether a request comes from the platform's own pages. Browsers state the page in Origin; programs send no Origin.
 * The check matters where a cookie is sufficient: tunnels may be on the same site as the platform, and SameSite does not keep their pages
 * out. `port` is the port that the platform listens on.
 */
export const createOwnOriginCheck = (
  settings: Settings,
  port: () => number,
): ((origin: string | undefined) => boolean) => {
  const published = new URL(settings.public_url).origin;
  const local = isLoopbackHost(settings.host);
  return (origin) => {
    if (origin === undefined || origin === published) return true;
    // On a local test installation, users type localhost or 127.0.0.1.
    return local && (origin === originOn('localhost', port()) || origin === originOn('127.0.0.1', port()));
  };
};

/** Returns the origin in the form of browsers, without the default port of http. */
const originOn = (host: string, port: number): string => new URL(`http://${host}:${port}`).origin;
