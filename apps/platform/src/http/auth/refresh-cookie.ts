// The cookie that carries the refresh token: out of reach of scripts, and sent to /auth alone.
import type { Context } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { PLATFORM_BOUNDS } from '../../platform-bounds.ts';
import type { PlatformEnv } from '../platform-env.ts';

export const REFRESH_COOKIE = 'refresh_token';
const PATH = '/auth';

/** Ours have 43. */
const TOKEN_MAX_CHARACTERS = 100;

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
      maxAge: PLATFORM_BOUNDS.REFRESH_TOKEN_SECS,
      secure: this.#secure,
    });
  }

  clear(context: Context<PlatformEnv>): void {
    deleteCookie(context, REFRESH_COOKIE, { httpOnly: true, sameSite: 'Lax', path: PATH, secure: this.#secure });
  }
}
