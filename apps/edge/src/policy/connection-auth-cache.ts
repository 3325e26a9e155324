// The authentication result of the previous request on the same connection. Most requests repeat the same credentials, and a lookup in
// the shared caches costs as much as ten rules. The result is valid only for the same policy and credentials and for a few seconds, and
// is dropped with the connection.
import type { PolicyEffect, PolicyEvent } from '@tunnel/policy';

/** How long a connection remembers an authentication result before the credentials are looked up again. */
export const CONNECTION_AUTH_MS = 10_000;
/** Maximum length of a password, token or login cookie that a connection remembers. Longer credentials are looked up for every request. */
export const CONNECTION_AUTH_MAX_CHARS = 4_096;

/** The policy and host name for which credentials were checked. */
interface Asked {
  readonly served: object;
  readonly host: string;
}

export class ConnectionAuthCache {
  #event: PolicyEvent | null = null;
  #untilMs = 0;
  #served: object | null = null;
  /** The `auth` or `login` part of the policy that requested the check. */
  #by: object | null = null;
  #host = '';
  #user = '';
  #text = '';

  /** Returns the result of the previous check, or null if the check is a different one or the result has expired. */
  find(effect: PolicyEffect, { served, host }: Asked, nowMs: number): PolicyEvent | null {
    if (this.#event === null || nowMs >= this.#untilMs || served !== this.#served || host !== this.#host) return null;
    return this.#isSame(effect) ? this.#event : null;
  }

  #isSame(effect: PolicyEffect): boolean {
    switch (effect.kind) {
      case 'check-password':
        return effect.auth === this.#by && effect.user === this.#user && effect.password === this.#text;
      case 'verify-jwt':
        return effect.auth === this.#by && effect.token === this.#text;
      case 'open-cookie':
        return effect.login === this.#by && effect.sealed.length === 1 && effect.sealed[0] === this.#text;
      default:
        return false;
    }
  }

  /** Remembers the result of a check, but only if the result admits the visitor. */
  keep(effect: PolicyEffect, { served, host }: Asked, event: PolicyEvent, nowMs: number): void {
    const said = wordsOf(effect);
    const untilMs = Math.min(nowMs + CONNECTION_AUTH_MS, endOf(event));
    if (said === null || said.text.length > CONNECTION_AUTH_MAX_CHARS || untilMs <= nowMs) return;
    this.#untilMs = untilMs;
    this.#event = event;
    this.#served = served;
    this.#by = said.by;
    // Copy the texts: substrings of a request head would keep the whole head in memory.
    this.#host = copied(host);
    this.#user = copied(said.user);
    this.#text = copied(said.text);
  }
}

/**
 * Copies a text through a UTF-8 buffer. Has to be cheap, because every connection pays for the copy, even with a single request. Text
 * that is not valid Unicode changes in the copy, and is never found again.
 */
const copied = (text: string): string => Buffer.from(text).toString();

/** Extracts the credentials of an effect. Returns null if the effect has no credentials that visitors send repeatedly. */
const wordsOf = (
  effect: PolicyEffect,
): { readonly by: object; readonly user: string; readonly text: string } | null => {
  switch (effect.kind) {
    case 'check-password':
      return { by: effect.auth, user: effect.user, text: effect.password };
    case 'verify-jwt':
      return { by: effect.auth, user: '', text: effect.token };
    case 'open-cookie':
      return effect.sealed.length === 1 ? { by: effect.login, user: '', text: effect.sealed[0] ?? '' } : null;
    default:
      return null;
  }
};

/**
 * Returns the time until which a result admits the visitor, or 0 if the result rejects the visitor. Infinite for a login session, because
 * the rules check its expiry on every request.
 */
const endOf = (event: PolicyEvent): number => {
  switch (event.kind) {
    case 'password-checked':
      return event.isRight ? Number.POSITIVE_INFINITY : 0;
    case 'jwt-verified': {
      const exp = event.claims?.['exp'];
      return typeof exp === 'number' ? exp * 1000 : 0;
    }
    case 'cookie-opened':
      return event.session === null ? 0 : Number.POSITIVE_INFINITY;
    default:
      return 0;
  }
};
