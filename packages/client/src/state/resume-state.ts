// What lets a restarted client take up its session again: the resume secret and the tunnels it had, in a slot that one process holds.
// Files are small and written rarely, so the calls are synchronous: a kill -9 finds either the old state or the new one.
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type FileLock, type Logger, lockHolder, sha256Hex, takeLock, writeAtomicSync } from '@tunnel/runtime';
import { CLIENT_LIMITS } from '../limits.ts';

/** clients of one configuration file that can each resume after a restart */
const RESUME_SLOTS_MAX = 16;

/** What the edge gave an earlier run or connection, to be asked for again. */
export interface Assignment {
  /** Left out once the session that knew it is gone. */
  readonly tunnelId?: string;
  readonly assignedPort?: number;
  readonly assignedSubdomain?: string;
}

export interface SavedTunnel extends Assignment {
  /** Protocol, name and local address: what makes it the same tunnel after a restart. */
  readonly key: string;
}

export interface SavedSession {
  readonly sessionId: string;
  readonly secret: string;
  readonly tunnels: readonly SavedTunnel[];
}

export interface SlotOptions {
  readonly dir: string;
  /** Server and what is opened: clients that differ in it never share a slot. */
  readonly key: string;
  readonly logger: Logger;
}

/** null when no slot can be had: the client then resumes while it runs, and not after a restart. */
export const takeSlot = ({ dir, key, logger }: SlotOptions): ResumeStore | null => {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    // It may have been there with other rights; secrets lie in it.
    chmodSync(dir, 0o700);
    const slots = slotPaths(dir, key);
    // A slot with a state and no living holder was left by a kill: that one first.
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

/** Where a client keeps what it needs to come back as itself. */
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
      // Missing, torn or from another version: as good as none.
      return null;
    }
  }

  save(session: SavedSession): void {
    this.#attempt('resume state not written', () => {
      writeAtomicSync(this.#path, JSON.stringify({ version: 1, ...session }), { soleWriter: true });
    });
  }

  /** Every now and then, by the owner of the timer. */
  touch(): void {
    this.#attempt('resume lock not refreshed', () => this.#lock.touch());
  }

  /** `forget`: the client ended on purpose, and nothing is left to come back to. */
  release({ forget }: { readonly forget: boolean }): void {
    this.#attempt('resume state not removed', () => {
      if (forget) rmSync(this.#path, { force: true });
      this.#lock.release();
    });
  }

  /** A full disk must not end a tunnel. */
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
