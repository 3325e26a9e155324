// Whether the platform can be reached. Calls say what they met; while it is away, a probe asks until it is back.
import { Fault } from '@tunnel/errors';

export interface ReachWorld {
  /** GET /health/db: resolves when platform and database are there. */
  probe(): Promise<unknown>;
  after(ms: number, act: () => void): void;
}

const PROBE_MS = 2000;

export class Reach {
  readonly #world: ReachWorld;
  readonly #listeners = new Set<() => void>();
  readonly #onBack: () => void;
  #away = false;
  #probing = false;

  constructor(world: ReachWorld, onBack: () => void) {
    this.#world = world;
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
    this.#world.after(PROBE_MS, () => void this.probeNow());
  }

  /** Asked at once, for example when the network of the machine is back. */
  async probeNow(): Promise<void> {
    if (!this.#away || this.#probing) return;
    this.#probing = true;
    try {
      await this.#world.probe();
      this.#set(false);
      this.#onBack();
    } catch {
      this.#world.after(PROBE_MS, () => void this.probeNow());
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
