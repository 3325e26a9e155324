// Keeps the number of carriers requested by the edge. A lost carrier is dialed again with a fresh token and a growing pause, while the
// session keeps using the remaining carriers.
import type { Carrier } from '@tunnel/mux';
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import { Backoff } from '../network/backoff.ts';
import { reasonOf } from '../network/dial-faults.ts';

/** Maximum pause between carrier dials. Short, because the control connection shows that the edge is reachable. */
const CARRIER_RETRY_MAX_MS = 5000;
/** Time after which RequestCarriers is sent again if no carrier tokens have arrived. */
const CARRIER_TOKEN_WAIT_MS = 10_000;

export interface CarrierKeeperOptions {
  readonly count: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  readonly dial: (token: string, signal: AbortSignal) => Promise<Carrier>;
  /** Gives the carrier to the session and returns the carrier's id, used later in onCarrierLost. */
  readonly adopt: (carrier: Carrier, token: string) => number;
  readonly requestTokens: (count: number) => void;
  /** Called after a carrier could not be opened. The keeper retries automatically. */
  readonly onDialFailed?: (error: unknown) => void;
}

type SlotState =
  | { readonly kind: 'waiting'; readonly timer: Timer }
  | { readonly kind: 'asking'; readonly timer: Timer }
  | { readonly kind: 'dialing' }
  | { readonly kind: 'live'; readonly carrierId: number };

/** A place for one of the session's `count` carriers, filled by successive connections. */
interface CarrierSlot {
  state: SlotState;
  readonly pace: Backoff;
}

export class CarrierKeeper {
  readonly #options: CarrierKeeperOptions;
  readonly #slots: CarrierSlot[] = [];
  readonly #stopped = new AbortController();

  constructor(options: CarrierKeeperOptions) {
    this.#options = options;
  }

  /** Opens the session's carriers with the tokens from AuthOk. Carriers without a token request one. */
  start(tokens: readonly string[]): void {
    for (let index = 0; index < this.#options.count; index += 1) {
      const slot: CarrierSlot = {
        state: { kind: 'dialing' },
        pace: new Backoff(this.#options.clock, this.#options.random, CARRIER_RETRY_MAX_MS),
      };
      this.#slots.push(slot);
      const token = tokens[index];
      if (token === undefined) this.#ask(slot);
      else void this.#dial(slot, token);
    }
  }

  onTokens(tokens: readonly string[]): void {
    if (this.#stopped.signal.aborted) return;
    for (const token of tokens) {
      const slot = this.#slots.find((candidate) => candidate.state.kind === 'asking');
      if (slot === undefined) return;
      cancelTimer(slot);
      void this.#dial(slot, token);
    }
  }

  onCarrierLost(carrierId: number): void {
    const slot = this.#slots.find(({ state }) => state.kind === 'live' && state.carrierId === carrierId);
    if (slot !== undefined) this.#wait(slot);
  }

  /** Aborts running dials and starts no more. Live carriers belong to the session and stay open. */
  stop(): void {
    this.#stopped.abort(new Error('the session has ended'));
    for (const slot of this.#slots) cancelTimer(slot);
  }

  #wait(slot: CarrierSlot): void {
    if (this.#stopped.signal.aborted) return;
    const timer = this.#options.clock.setTimeout(() => this.#ask(slot), slot.pace.nextDelayMs());
    slot.state = { kind: 'waiting', timer };
  }

  #ask(slot: CarrierSlot): void {
    // Retries if the edge never sends a token, so that the slot cannot hang forever.
    const timer = this.#options.clock.setTimeout(() => this.#wait(slot), CARRIER_TOKEN_WAIT_MS);
    slot.state = { kind: 'asking', timer };
    this.#options.requestTokens(1);
  }

  async #dial(slot: CarrierSlot, token: string): Promise<void> {
    slot.state = { kind: 'dialing' };
    try {
      const carrier = await this.#options.dial(token, this.#stopped.signal);
      if (this.#stopped.signal.aborted) return carrier.destroy('the session has ended');
      slot.state = { kind: 'live', carrierId: this.#options.adopt(carrier, token) };
      slot.pace.connected();
    } catch (error) {
      if (this.#stopped.signal.aborted) return;
      this.#options.logger.debug({ reason: reasonOf(error) }, 'carrier not opened; retrying');
      this.#wait(slot);
      this.#options.onDialFailed?.(error);
    }
  }
}

const cancelTimer = ({ state }: CarrierSlot): void => {
  if (state.kind === 'waiting' || state.kind === 'asking') state.timer.cancel();
};
