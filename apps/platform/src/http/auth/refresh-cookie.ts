// The cookie that carries the refresh token, and whether the page that sends it is one of ours.
import { isLoopbackHost } from '@tunnel/core';
import type { ServerConfig } from '@tunnel/runtime';
import type { Context } from 'hono';
import { deleteCookie, setCookie } from 'hono/cookie';
import { LIMITS } from '../../limits.ts';
import type { PlatformEnv } from '../platform-env.ts';

export const REFRESH_COOKIE = 'refresh_token';
const PATH = '/auth';

/** Ours have 43. */
const TOKEN_MAX_CHARACTERS = 100;
/** Tokens in one request that a log-out ends. */
const LOGGED_OUT_MAX = 10;

/** Out of reach of scripts, and sent to /auth alone. */
export class RefreshCookie {
  readonly #secure: boolean;

  constructor(publicUrl: string) {
    this.#secure = publicUrl.startsWith('https:');
  }

  /**
   * null: there is none, nothing that we ever gave, or two. A page of a tunnel below our domain can set one for the domain, and a browser sends
   * both without saying which is whose: whoever took the other one would be logged in as its owner, and store there what is theirs.
   */
  read(context: Context<PlatformEnv>): string | null {
    const shown = valuesOf(context.req.header('cookie') ?? '');
    const [token = ''] = shown;
    return shown.length !== 1 || !isTokenLike(token) ? null : token;
  }

  /** Of a log-out: whoever's they are, none is used again. */
  readAll(context: Context<PlatformEnv>): readonly string[] {
    return valuesOf(context.req.header('cookie') ?? '')
      .filter(isTokenLike)
      .slice(0, LOGGED_OUT_MAX);
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

const isTokenLike = (token: string): boolean => token !== '' && token.length <= TOKEN_MAX_CHARACTERS;

/** Every value of that name: who reads cookies into a map sees one of two, and does not know whose. */
const valuesOf = (header: string): string[] =>
  header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${REFRESH_COOKIE}=`))
    .map((pair) => pair.slice(REFRESH_COOKIE.length + 1));

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
