// Keeps the number of carriers that the edge asked for: one that is lost is dialled again, with a fresh token and a growing pause.
// The session knows nothing of it: its other carriers go on.
import type { Carrier } from '@tunnel/mux';
import { LIMITS } from '@tunnel/protocol';
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import { reasonOf } from './dial-faults.ts';
import { RetryPace } from './retry-pace.ts';

export interface CarrierKeeperDeps {
  readonly count: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  readonly dial: (token: string, signal: AbortSignal) => Promise<Carrier>;
  /** Gives the carrier to the session; the id comes back through onCarrierLost. */
  readonly adopt: (carrier: Carrier) => number;
  readonly requestTokens: (count: number) => void;
  /** A dial failed; the keeper tries again by itself. */
  readonly onDialFailed?: (error: unknown) => void;
}

type PlaceState =
  | { readonly kind: 'waiting'; readonly timer: Timer }
  | { readonly kind: 'asking'; readonly timer: Timer }
  | { readonly kind: 'dialing' }
  | { readonly kind: 'live'; readonly carrierId: number };

/** One of the `count` carriers, whichever connection fills it. */
interface Place {
  state: PlaceState;
  readonly pace: RetryPace;
}

export class CarrierKeeper {
  readonly #deps: CarrierKeeperDeps;
  readonly #places: Place[] = [];
  readonly #stopped = new AbortController();

  constructor(deps: CarrierKeeperDeps) {
    this.#deps = deps;
  }

  /** With the tokens of AuthOk; places without one ask for theirs. */
  start(tokens: readonly string[]): void {
    for (let index = 0; index < this.#deps.count; index += 1) {
      const place: Place = {
        state: { kind: 'dialing' },
        pace: new RetryPace(this.#deps.clock, this.#deps.random, LIMITS.CARRIER_RETRY_MAX_MS),
      };
      this.#places.push(place);
      const token = tokens[index];
      if (token === undefined) this.#ask(place);
      else void this.#dial(place, token);
    }
  }

  onTokens(tokens: readonly string[]): void {
    if (this.#stopped.signal.aborted) return;
    for (const token of tokens) {
      const place = this.#places.find((candidate) => candidate.state.kind === 'asking');
      if (place === undefined) return;
      cancelTimer(place);
      void this.#dial(place, token);
    }
  }

  onCarrierLost(carrierId: number): void {
    const place = this.#places.find(({ state }) => state.kind === 'live' && state.carrierId === carrierId);
    if (place !== undefined) this.#wait(place);
  }

  /** No dial goes on and none follows; carriers that live belong to the session. */
  stop(): void {
    this.#stopped.abort(new Error('the session is over'));
    for (const place of this.#places) cancelTimer(place);
  }

  #wait(place: Place): void {
    if (this.#stopped.signal.aborted) return;
    const timer = this.#deps.clock.setTimeout(() => this.#ask(place), place.pace.nextDelayMs());
    place.state = { kind: 'waiting', timer };
  }

  #ask(place: Place): void {
    // An edge that never answers must not stop the place for good.
    const timer = this.#deps.clock.setTimeout(() => this.#wait(place), LIMITS.CARRIER_TOKEN_WAIT_MS);
    place.state = { kind: 'asking', timer };
    this.#deps.requestTokens(1);
  }

  async #dial(place: Place, token: string): Promise<void> {
    place.state = { kind: 'dialing' };
    try {
      const carrier = await this.#deps.dial(token, this.#stopped.signal);
      if (this.#stopped.signal.aborted) return carrier.destroy('the session is over');
      place.state = { kind: 'live', carrierId: this.#deps.adopt(carrier) };
      place.pace.connected();
    } catch (error) {
      if (this.#stopped.signal.aborted) return;
      this.#deps.logger.debug({ reason: reasonOf(error) }, 'carrier not opened, trying again');
      this.#wait(place);
      this.#deps.onDialFailed?.(error);
    }
  }
}

const cancelTimer = ({ state }: Place): void => {
  if (state.kind === 'waiting' || state.kind === 'asking') state.timer.cancel();
};
