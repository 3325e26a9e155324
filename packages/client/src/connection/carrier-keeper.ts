// Keeps as many carriers open as the session's streams need, up to the number requested by the edge. A lost carrier is dialed again with a
// fresh token and a growing pause, while the session keeps using the remaining carriers.
import type { Carrier } from '@tunnel/mux';
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import { Backoff } from '../network/backoff.ts';
import { reasonOf } from '../network/dial-faults.ts';
import { CarrierCount } from './carrier-count.rules.ts';

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
  /** Returns the id of an open carrier without streams that the session can do without. Null if every carrier is in use. */
  readonly spareCarrier: () => number | null;
  /** Closes an open carrier after the edge has learned that no new streams are accepted on it. */
  readonly retireCarrier: (carrierId: number) => void;
  /** Called after a carrier could not be opened. The keeper retries automatically. */
  readonly onDialFailed?: (error: unknown) => void;
}

type SlotState =
  | { readonly kind: 'resting' }
  | { readonly kind: 'waiting'; readonly timer: Timer }
  | { readonly kind: 'asking'; readonly timer: Timer }
  | { readonly kind: 'dialing' }
  | { readonly kind: 'live'; readonly carrierId: number };

/** A place for one of the session's `count` carriers, filled by successive connections while the session needs the carrier. */
interface CarrierSlot {
  state: SlotState;
  readonly pace: Backoff;
}

export class CarrierKeeper {
  readonly #options: CarrierKeeperOptions;
  readonly #count: CarrierCount;
  readonly #slots: CarrierSlot[] = [];
  readonly #stopped = new AbortController();

  constructor(options: CarrierKeeperOptions) {
    this.#options = options;
    this.#count = new CarrierCount(options.count, options.clock.monotonic());
  }

  /** Opens the session's first carriers with the tokens from AuthOk. Carriers without a token request one. */
  start(tokens: readonly string[]): void {
    for (let index = 0; index < this.#options.count; index += 1) {
      const slot: CarrierSlot = {
        state: { kind: 'resting' },
        pace: new Backoff(this.#options.clock, this.#options.random, CARRIER_RETRY_MAX_MS),
      };
      this.#slots.push(slot);
      if (index >= this.#count.wanted) continue;
      const token = tokens[index];
      if (token === undefined) this.#ask(slot);
      else void this.#dial(slot, token);
    }
  }

  /** Opens or closes carriers, so that their number fits the session's open streams. Call after a stream was opened, and regularly. */
  fit(streams: number, nowMs: number): void {
    if (this.#stopped.signal.aborted) return;
    const wanted = this.#count.update(streams, nowMs);
    let surplus = -wanted;
    for (const { state } of this.#slots) if (state.kind !== 'resting') surplus += 1;
    for (const slot of this.#slots) {
      if (surplus === 0) return;
      if (surplus < 0 && slot.state.kind === 'resting') {
        this.#ask(slot);
        surplus += 1;
      } else if (surplus > 0 && this.#rest(slot)) surplus -= 1;
    }
  }

  /** Gives up a slot that has no carrier yet, or whose carrier can be spared. Returns false if the slot's carrier is needed. */
  #rest(slot: CarrierSlot): boolean {
    const { state } = slot;
    if (state.kind === 'resting' || state.kind === 'dialing') return false;
    if (state.kind === 'live' && state.carrierId !== this.#options.spareCarrier()) return false;
    cancelTimer(slot);
    slot.state = { kind: 'resting' };
    if (state.kind === 'live') this.#options.retireCarrier(state.carrierId);
    return true;
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
