// Whether the platform can be reached. Calls say what they met; while it is away, a probe asks until it is back.
import { Fault } from '@tunnel/errors';

export interface ReachabilityEnvironment {
  /** GET /health/db: resolves when platform and database are there. */
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

  /** Any error of a call; only those that mean an absence count. */
  noteError(error: unknown): void {
    if (!meansAway(error) || this.#away) return;
    this.#set(true);
    this.#environment.after(PROBE_MS, () => void this.probeNow());
  }

  /** Asked at once, for example when the network of the machine is back. */
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

/** Not every 503: a processor of payments, or a busy login, is no absence of the platform. */
export const meansAway = (error: unknown): boolean =>
  error instanceof Fault && (error.code === 'CLIENT_PLATFORM_UNREACHABLE' || error.code === 'DATABASE_AWAY');
