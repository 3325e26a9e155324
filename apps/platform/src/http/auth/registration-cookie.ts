// The cookie that marks, for a day, the browser in which an account was registered. The link in the verification mail signs in only in
// the marked browser. In another browser, the link only verifies the address.
import { equalInConstantTime } from '@tunnel/runtime';
import type { Context } from 'hono';
import { deleteCookie, setCookie } from 'hono/cookie';
import { LIMITS } from '../../limits.ts';
import type { PlatformEnv } from '../shared/platform-env.ts';
import { cookieValues } from './cookie-values.ts';

const NAME = 'registration';
/** Format of the cookie value, `<end in ms>.<mark>`, usually 57 characters. */
const FORM = /^(\d{1,15})\.([\w-]{43})$/;

/** Computes the mark for an account and the end of its validity. Only this platform can compute the mark. */
type MarkOf = (userId: string, until: number) => string;

export class RegistrationCookie {
  readonly #secure: boolean;
  readonly #name: string;
  readonly #markOf: MarkOf;

  constructor(publicUrl: string, markOf: MarkOf) {
    this.#secure = publicUrl.startsWith('https:');
    // Browsers accept a cookie with the prefix `__Host-` only over https and from its own host, so no page of a tunnel can plant the
    // cookie.
    this.#name = this.#secure ? `__Host-${NAME}` : NAME;
    this.#markOf = markOf;
  }

  write(context: Context<PlatformEnv>, userId: string, now: number): void {
    const until = now + LIMITS.VERIFY_TOKEN_MS;
    const maxAge = LIMITS.VERIFY_TOKEN_MS / 1000;
    setCookie(context, this.#name, `${until}.${this.#markOf(userId, until)}`, { ...this.#attributes(), maxAge });
  }

  /**
   * Returns true if the account was registered in the request's browser within the last day. With two such cookies the origin is unclear,
   * and the result is false.
   */
  isOf(context: Context<PlatformEnv>, userId: string, now: number): boolean {
    const [shown = '', ...more] = cookieValues(context, this.#name);
    const [, until = '', mark = ''] = FORM.exec(shown) ?? [];
    if (more.length > 0 || Number(until) <= now) return false;
    return equalInConstantTime(mark, this.#markOf(userId, Number(until)));
  }

  clear(context: Context<PlatformEnv>): void {
    deleteCookie(context, this.#name, this.#attributes());
  }

  #attributes() {
    return { httpOnly: true, sameSite: 'Lax' as const, path: '/', secure: this.#secure };
  }
}
