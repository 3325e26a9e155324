// The cookie that carries the refresh token, and whether the page that sends it is one of ours.
import { isLoopbackHost } from '@tunnel/core';
import type { ServerConfig } from '@tunnel/runtime';
import type { Context } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { LIMITS } from '../../limits.ts';
import type { PlatformEnv } from '../platform-env.ts';

export const REFRESH_COOKIE = 'refresh_token';
const PATH = '/auth';

/** Ours have 43. */
const TOKEN_MAX_CHARACTERS = 100;

/** Out of reach of scripts, and sent to /auth alone. */
export class RefreshCookie {
  readonly #secure: boolean;

  constructor(publicUrl: string) {
    this.#secure = publicUrl.startsWith('https:');
  }

  /** null: there is none, or nothing that we ever gave. */
  read(context: Context<PlatformEnv>): string | null {
    const token = getCookie(context, REFRESH_COOKIE);
    return token === undefined || token === '' || token.length > TOKEN_MAX_CHARACTERS ? null : token;
  }

  write(context: Context<PlatformEnv>, token: string): void {
    setCookie(context, REFRESH_COOKIE, token, {
      httpOnly: true,
      sameSite: 'Lax',
      path: PATH,
      maxAge: LIMITS.REFRESH_TOKEN_SECS,
      secure: this.#secure,
    });
  }

  clear(context: Context<PlatformEnv>): void {
    deleteCookie(context, REFRESH_COOKIE, { httpOnly: true, sameSite: 'Lax', path: PATH, secure: this.#secure });
  }
}

type Settings = Pick<ServerConfig['platform'], 'host' | 'public_url'>;

/**
 * Whether a request comes from a page of ours. A browser says so in Origin; programs send none. It matters where a cookie
 * alone is enough, because tunnels may live on the same site as we do and SameSite does not keep them out. `port`: the one
 * that is listened on.
 */
export const ownOriginOf = (settings: Settings, port: () => number): ((origin: string | undefined) => boolean) => {
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
