// What was found out for the request before on the same connection: most bring the same words again, and to look them up among everybody's costs as
// much as ten rules. It is known for the same policy and the same words alone, for some seconds, and goes with the connection.
import type { PolicyEffect, PolicyEvent } from '@tunnel/policy';

/** how long a connection remembers who its visitor was found to be, before that is looked up again */
export const CONNECTION_AUTH_MS = 10_000;
/** a longer password, token or login cookie is looked up each time */
export const CONNECTION_AUTH_MAX_CHARS = 4_096;

/** What is served, and under which name. */
interface Asked {
  readonly served: object;
  readonly host: string;
}

export class ConnectionAuthCache {
  #event: PolicyEvent | null = null;
  #untilMs = 0;
  #served: object | null = null;
  /** The part of the policy that asked. */
  #by: object | null = null;
  #host = '';
  #user = '';
  #text = '';

  /** null: it is something else, or too long ago. */
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

  /** Only what lets somebody in. */
  keep(effect: PolicyEffect, { served, host }: Asked, event: PolicyEvent, nowMs: number): void {
    const said = wordsOf(effect);
    const untilMs = Math.min(nowMs + CONNECTION_AUTH_MS, endOf(event));
    if (said === null || said.text.length > CONNECTION_AUTH_MAX_CHARS || untilMs <= nowMs) return;
    this.#untilMs = untilMs;
    this.#event = event;
    this.#served = served;
    this.#by = said.by;
    // They may be cut out of a head, and would keep all of it.
    this.#host = copied(host);
    this.#user = copied(said.user);
    this.#text = copied(said.text);
  }
}

/** By way of bytes, as it is paid by each connection that is used once; a text that is no UTF-8 is another one then, and never found. */
const copied = (text: string): string => Buffer.from(text).toString();

/** null: nothing that is brought again and again. */
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

/** Until when it lets somebody in; of a login the rules look for themselves. */
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
