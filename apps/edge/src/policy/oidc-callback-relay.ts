// The callback of the operator's providers, at `edge.<domain>/.tunnel/callback`: one address for all tunnels at the provider. It sends on
// to the tunnel that is sealed into the state, and does nothing else. The code goes sealed for the login that its state is of: whoever leads
// somebody to the provider with the state of one tunnel and the challenge of another must not catch a code that the other takes.

import { Fault } from '@tunnel/errors';
import { type EdgeResponse } from '@tunnel/http1';
import { CALLBACK_PATH, queryValues } from '@tunnel/policy';
import type { Clock } from '@tunnel/runtime';
import type { SealBinding, SealedTexts } from './sealed-texts.ts';

const STATE: SealBinding = { purpose: 'state', parts: [] };
const CODE: SealBinding = { purpose: 'code', parts: [] };

/** Whoever is sent on leaves nothing behind of where from, and no cache keeps where to. */
const HEADERS = [
  ['cache-control', 'no-store'],
  ['referrer-policy', 'no-referrer'],
] as const;

interface StateTarget {
  /** `https://shop.example.com:8443` */
  readonly origin: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

export class OidcCallbackRelay {
  readonly #seals: SealedTexts;
  readonly #clock: Pick<Clock, 'now'>;

  constructor(seals: SealedTexts, clock: Pick<Clock, 'now'>) {
    this.#seals = seals;
    this.#clock = clock;
  }

  /** A state that leads to `origin`: `own` is what the tunnel itself knows it by, and stands in front. */
  stateFor(own: string, target: StateTarget): string {
    return `${own}.${this.#seals.seal(STATE, JSON.stringify(target), own)}`;
  }

  /** `path` with its query, as it came. */
  answer(path: string): { readonly response: EdgeResponse } | { readonly fault: Fault } {
    const mark = path.indexOf('?');
    const values = queryValues(mark === -1 ? '' : path.slice(mark));
    const state = values?.get('state') ?? '';
    const own = state.slice(0, Math.max(0, state.lastIndexOf('.')));
    const origin = this.#originIn(own, state.slice(own.length + 1));
    if (values === null || origin === null) return { fault: new Fault('POLICY_LOGIN_STATE') };
    // Written anew, so that nothing in it can end the line; and the tunnel is told its own state.
    const told = new Map(values).set('state', own);
    const code = values.get('code') ?? '';
    if (code !== '') told.set('code', this.#seals.seal(CODE, code, own));
    const location = `${origin}${CALLBACK_PATH}?${new URLSearchParams([...told]).toString()}`;
    return { response: { status: 302, headers: [['location', location], ...HEADERS], body: '' } };
  }

  /** What the provider gave for the login of this state; null: it did not come by here, or was for another login. */
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
