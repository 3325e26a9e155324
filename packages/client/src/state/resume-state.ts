// State for resuming a session after a restart: the resume secret and the tunnels, in a slot held by one process. Files are small and
// rarely written, so all calls are synchronous: after a kill -9 either the old or the new state exists.
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type FileLock, type Logger, lockHolder, sha256Hex, takeLock, writeAtomicSync } from '@tunnel/runtime';
import { CLIENT_LIMITS } from '../limits.ts';

/** Maximum number of clients per configuration file that can resume after a restart. */
const RESUME_SLOTS_MAX = 16;

/** Values assigned by the edge in an earlier run or connection, to be requested again. */
export interface Assignment {
  /** Id of the tunnel in the session. Undefined once the session is lost. */
  readonly tunnelId?: string;
  readonly assignedPort?: number;
  readonly assignedSubdomain?: string;
}

export interface SavedTunnel extends Assignment {
  /** Protocol, name and local address, which identify a tunnel across restarts. */
  readonly key: string;
}

export interface SavedSession {
  readonly sessionId: string;
  readonly secret: string;
  readonly tunnels: readonly SavedTunnel[];
}

export interface SlotOptions {
  readonly dir: string;
  /** Key of the saved session: server and opened tunnels. Clients with different keys never share a slot. */
  readonly key: string;
  readonly logger: Logger;
}

/** Takes a slot. Returns null if no slot is free: then the client can resume while running, but not after a restart. */
export const takeSlot = ({ dir, key, logger }: SlotOptions): ResumeStore | null => {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    // Restricts the folder's permissions, because it may have existed with others, and holds secrets.
    chmodSync(dir, 0o700);
    const slots = slotPaths(dir, key);
    // Prefers slots with a saved state and no running holder, left by a killed client.
    const left = slots.filter((path) => existsSync(`${path}.json`) && !isHeld(path));
    for (const path of [...left, ...slots]) {
      const lock = takeLock(`${path}.lock`, CLIENT_LIMITS.FOREIGN_SLOT_STALE_AFTER_MS);
      if (lock !== null) return new ResumeStore(`${path}.json`, lock, logger);
    }
    logger.warn(
      { dir, slots: slots.length },
      'all resume slots are in use; this client cannot resume its session after a restart',
    );
  } catch (error) {
    logger.warn(
      { dir, reason: String(error) },
      'cannot save resume state; this client cannot resume its session after a restart',
    );
  }
  return null;
};

const slotPaths = (dir: string, key: string): string[] => {
  const name = sha256Hex(key).slice(0, 16);
  return Array.from({ length: RESUME_SLOTS_MAX }, (_, index) => join(dir, `${name}-${index}`));
};

const isHeld = (path: string): boolean =>
  lockHolder(`${path}.lock`, CLIENT_LIMITS.FOREIGN_SLOT_STALE_AFTER_MS) !== null;

/** File with the state that a restarted client needs to resume its session. */
export class ResumeStore {
  readonly #path: string;
  readonly #lock: FileLock;
  readonly #logger: Logger;

  constructor(path: string, lock: FileLock, logger: Logger) {
    this.#path = path;
    this.#lock = lock;
    this.#logger = logger;
  }

  load(): SavedSession | null {
    try {
      return parseSession(JSON.parse(readFileSync(this.#path, 'utf8')));
    } catch {
      // A missing, damaged or incompatible state file counts as empty.
      return null;
    }
  }

  save(session: SavedSession): void {
    this.#attempt('resume state not written', () => {
      writeAtomicSync(this.#path, JSON.stringify({ version: 1, ...session }), { soleWriter: true });
    });
  }

  /** Refreshes the lock of the state file. Called periodically by the owner of the timer. */
  touch(): void {
    this.#attempt('resume lock not refreshed', () => this.#lock.touch());
  }

  /** Releases the state file's slot. `forget` deletes the state after an intentional end. */
  release({ forget }: { readonly forget: boolean }): void {
    this.#attempt('resume state not removed', () => {
      if (forget) rmSync(this.#path, { force: true });
      this.#lock.release();
    });
  }

  /** Logs errors of writing the state file, because a full disk must not end a tunnel. */
  #attempt(failure: string, action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#logger.warn({ file: this.#path, reason: String(error) }, failure);
    }
  }
}

const parseSession = (value: unknown): SavedSession | null => {
  const { version, sessionId, secret, tunnels } = value as Record<string, unknown>;
  if (version !== 1 || typeof sessionId !== 'string' || typeof secret !== 'string') return null;
  return { sessionId, secret, tunnels: Array.isArray(tunnels) ? tunnels.filter(isSavedTunnel) : [] };
};

const isSavedTunnel = (value: unknown): value is SavedTunnel => {
  const { key, tunnelId, assignedPort, assignedSubdomain } = (value ?? {}) as Record<string, unknown>;
  return (
    typeof key === 'string' &&
    (tunnelId === undefined || typeof tunnelId === 'string') &&
    (assignedPort === undefined || typeof assignedPort === 'number') &&
    (assignedSubdomain === undefined || typeof assignedSubdomain === 'string')
  );
};
