// The login callback of the operator's providers, at `edge.<domain>/.tunnel/callback`: a single redirect address for all tunnels. The
// relay only redirects to the tunnel that is sealed in the state. The code is sealed for the login of the state. Otherwise an attacker
// who sends a visitor to the provider with the state of one tunnel and the challenge of another could obtain a code that the other tunnel
// accepts.

import { Fault } from '@tunnel/errors';
import { type EdgeResponse } from '@tunnel/http1';
import { CALLBACK_PATH, queryValues } from '@tunnel/policy';
import type { Clock } from '@tunnel/runtime';
import type { SealBinding, SealedTexts } from './sealed-texts.ts';

const STATE: SealBinding = { purpose: 'state', parts: [] };
const CODE: SealBinding = { purpose: 'code', parts: [] };

/** Headers of the redirect: no cache stores the target, and the browser does not send the callback URL as the referrer. */
const HEADERS = [
  ['cache-control', 'no-store'],
  ['referrer-policy', 'no-referrer'],
] as const;

interface StateTarget {
  /** Public URL of the tunnel as the target of the redirect: `https://shop.example.com:8443`. */
  readonly origin: string;
  /** Expiry time of the state in milliseconds since the epoch. */
  readonly until: number;
}

export class OidcCallbackRelay {
  readonly #seals: SealedTexts;
  readonly #clock: Pick<Clock, 'now'>;

  constructor(seals: SealedTexts, clock: Pick<Clock, 'now'>) {
    this.#seals = seals;
    this.#clock = clock;
  }

  /**
   * Returns a state that redirects to the target's origin. `own` is the state by which the tunnel recognizes the login, and comes first.
   */
  stateFor(own: string, target: StateTarget): string {
    return `${own}.${this.#seals.seal(STATE, JSON.stringify(target), own)}`;
  }

  /** Answers a request for the callback. `path` is the unchanged path with its query. */
  answer(path: string): { readonly response: EdgeResponse } | { readonly fault: Fault } {
    const mark = path.indexOf('?');
    const values = queryValues(mark === -1 ? '' : path.slice(mark));
    const state = values?.get('state') ?? '';
    const own = state.slice(0, Math.max(0, state.lastIndexOf('.')));
    const origin = this.#originIn(own, state.slice(own.length + 1));
    if (values === null || origin === null) return { fault: new Fault('POLICY_LOGIN_STATE') };
    // Build the query from its parsed values, so that no character can end the header line. The tunnel receives only its own part of the
    // state.
    const told = new Map(values).set('state', own);
    const code = values.get('code') ?? '';
    if (code !== '') told.set('code', this.#seals.seal(CODE, code, own));
    const location = `${origin}${CALLBACK_PATH}?${new URLSearchParams([...told]).toString()}`;
    return { response: { status: 302, headers: [['location', location], ...HEADERS], body: '' } };
  }

  /**
   * Opens the provider's code for the login with this state. Returns null if the code did not pass this relay or belongs to another
   * login.
   */
  codeOf(own: string, sealed: string): string | null {
    return this.#seals.open(CODE, sealed, own);
  }

  #originIn(own: string, sealed: string): string | null {
    const text = own === '' ? null : this.#seals.open(STATE, sealed, own);
    if (text === null) return null;
    const { origin, until } = JSON.parse(text) as StateTarget;
    return this.#clock.now() < until ? origin : null;
  }
}
