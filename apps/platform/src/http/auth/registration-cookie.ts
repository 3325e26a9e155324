// The cookie that marks the browser in which an account was registered, for a day. The link of the verification mail signs in there, and only there: whoever
// else opens it proves the address and nothing more.
import { equalInConstantTime } from '@tunnel/runtime';
import type { Context } from 'hono';
import { deleteCookie, setCookie } from 'hono/cookie';
import { LIMITS } from '../../limits.ts';
import type { PlatformEnv } from '../shared/platform-env.ts';
import { cookieValues } from './cookie-values.ts';

const NAME = 'registration';
/** `<end in ms>.<mark>`: ours have 57 characters. */
const FORM = /^(\d{1,15})\.([\w-]{43})$/;

/** A value that only this platform can make, for an account and the end of its mark. */
type MarkOf = (userId: string, until: number) => string;

export class RegistrationCookie {
  readonly #secure: boolean;
  readonly #name: string;
  readonly #markOf: MarkOf;

  constructor(publicUrl: string, markOf: MarkOf) {
    this.#secure = publicUrl.startsWith('https:');
    // Browsers take a cookie of this prefix only over https and from its own host, so that no page of a tunnel can plant one.
    this.#name = this.#secure ? `__Host-${NAME}` : NAME;
    this.#markOf = markOf;
  }

  write(context: Context<PlatformEnv>, userId: string, now: number): void {
    const until = now + LIMITS.VERIFY_TOKEN_MS;
    const maxAge = LIMITS.VERIFY_TOKEN_MS / 1000;
    setCookie(context, this.#name, `${until}.${this.#markOf(userId, until)}`, { ...this.#attributes(), maxAge });
  }

  /** Whether the request comes from the browser in which that account was registered within the last day. With two such cookies nobody knows whose they are. */
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
