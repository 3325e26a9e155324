// Tracks whether the platform is reachable. Failed API requests mark the platform as unreachable; then a probe runs every 2 s until the
// platform responds.
import { Fault } from '@tunnel/errors';

export interface ReachabilityEnvironment {
  /** Sends GET /health/db. Resolves if the platform and the database are up. */
  probe(): Promise<unknown>;
  after(ms: number, act: () => void): void;
}

const PROBE_MS = 2000;

export class Reachability {
  readonly #environment: ReachabilityEnvironment;
  readonly #listeners = new Set<() => void>();
  readonly #onBack: () => void;
  #away = false;
  #probing = false;

  constructor(environment: ReachabilityEnvironment, onBack: () => void) {
    this.#environment = environment;
    this.#onBack = onBack;
  }

  readonly isAway = (): boolean => this.#away;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Records an error of an API request. Errors that do not mean an unreachable platform are ignored. */
  noteError(error: unknown): void {
    if (!meansAway(error) || this.#away) return;
    this.#set(true);
    this.#environment.after(PROBE_MS, () => void this.probeNow());
  }

  /** Probes the platform without waiting for the next interval, for example when the computer is back online. */
  async probeNow(): Promise<void> {
    if (!this.#away || this.#probing) return;
    this.#probing = true;
    try {
      await this.#environment.probe();
      this.#set(false);
      this.#onBack();
    } catch {
      this.#environment.after(PROBE_MS, () => void this.probeNow());
    } finally {
      this.#probing = false;
    }
  }

  #set(away: boolean): void {
    this.#away = away;
    for (const listener of this.#listeners) listener();
  }
}

/**
 * Returns whether an error means that the platform is unreachable. A 503 alone does not: the payment processor may be down, or sign-in
 * may be overloaded.
 */
export const meansAway = (error: unknown): boolean =>
  error instanceof Fault && (error.code === 'CLIENT_PLATFORM_UNREACHABLE' || error.code === 'DATABASE_AWAY');
