// Names and ports assigned by edges to this user's tunnels, so that the next start requests the same ones. All clients of the user share
// one file. Every client reads the file when it opens a tunnel, and writes its changes under a lock, so that no change is lost.
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Clock,
  isProcessAlive,
  type Logger,
  randomToken,
  type Timer,
  takeLock,
  writeAtomicSync,
} from '@tunnel/runtime';
import { CLIENT_LIMITS } from '../limits.ts';

/** Maximum number of remembered names and ports per user. The longest unused are dropped. */
export const ASSIGNED_ENDPOINTS_MAX = 200;
/** Delay before changes are written to the file, to collect further changes. Content read from the file is valid for the same time. */
export const ASSIGNED_WRITE_MS = 200;
/** Maximum number of write attempts by a closing client while another client holds the lock. */
const ASSIGNED_LOCK_TRIES = 20;
/** Pause between a closing client's attempts to write the file while another client holds the lock. */
const ASSIGNED_LOCK_PAUSE_MS = 5;

/** A name or port that an edge assigned to a tunnel, remembered for the next run. */
export interface RememberedEndpoint {
  /** Server, account and protocol, plus the target (for a name) or the tunnel's name (for a port). */
  readonly key: string;
  /** The assigned subdomain, or the assigned port as text. */
  readonly value: string;
  /** Name of the tunnel, so that two tunnels to the same target do not swap their addresses. */
  readonly name: string;
  /** Time when the name or port was last used, in epoch milliseconds. */
  readonly usedAt: number;
  /** The client that uses the endpoint, or was killed while using it. Null if the last client closed normally. */
  readonly holder: Holder | null;
}

interface Holder {
  readonly pid: number;
  /** Tells apart two clients of one process, and two processes with the same pid. */
  readonly run: string;
}

// ---- rules ----

/**
 * Returns the last used endpoint for the key that is not in use by another running client. Prefers the same tunnel name. Returns null if
 * there is none.
 */
export const chooseRemembered = (
  all: readonly RememberedEndpoint[],
  { key, name }: Pick<RememberedEndpoint, 'key' | 'name'>,
  isTaken: (endpoint: RememberedEndpoint) => boolean,
): RememberedEndpoint | null => {
  const fitting = all.filter((endpoint) => endpoint.key === key && !isTaken(endpoint));
  const [best] = fitting.sort(
    (one, other) => Number(other.name === name) - Number(one.name === name) || other.usedAt - one.usedAt,
  );
  return best ?? null;
};

/** Applies changes; null removes an endpoint. Above the limit the longest unused endpoints are dropped. */
export const mergeRemembered = (
  all: readonly RememberedEndpoint[],
  changes: ReadonlyMap<string, RememberedEndpoint | null>,
): RememberedEndpoint[] => {
  const merged = new Map(all.map((endpoint) => [idOf(endpoint), endpoint]));
  for (const [id, endpoint] of changes) {
    if (endpoint === null) merged.delete(id);
    else merged.set(id, endpoint);
  }
  return [...merged.values()].sort((one, other) => other.usedAt - one.usedAt).slice(0, ASSIGNED_ENDPOINTS_MAX);
};

type Used = Pick<RememberedEndpoint, 'key' | 'value' | 'name'>;

const idOf = ({ key, value }: Pick<Used, 'key' | 'value'>): string => JSON.stringify([key, value]);

// ---- the file ----

export interface AssignedEndpointsOptions {
  /** Folder for the remembered names and ports, which only this user can read. */
  readonly dir: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** If true, remembered endpoints of a key are forgotten when the key is first requested. */
  readonly isForgetful: boolean;
}

const FILE = 'assigned.json';

/** Ids of the clients running in this process. */
const runsHere = new Set<string>();

export class AssignedEndpoints {
  readonly #options: AssignedEndpointsOptions;
  readonly #path: string;
  readonly #run = randomToken(12);
  /** Remembered names and ports in use by this client. */
  readonly #used = new Set<string>();
  readonly #forgotten = new Set<string>();
  /** Changes of remembered names and ports that are not written to the file yet. */
  readonly #changes = new Map<string, RememberedEndpoint | null>();
  #read: { readonly at: number; readonly all: readonly RememberedEndpoint[] } | null = null;
  #waiting: Timer | null = null;

  constructor(options: AssignedEndpointsOptions) {
    this.#options = options;
    this.#path = join(options.dir, FILE);
    runsHere.add(this.#run);
  }

  /** Returns the endpoint to request from the edge. Null if none is remembered, or if all are in use. */
  take(key: string, name: string): string | null {
    if (this.#isFull) return null;
    if (this.#options.isForgetful && !this.#forgotten.has(key)) this.#forget(key);
    const found = chooseRemembered(this.#current(), { key, name }, (endpoint) => this.#isTaken(endpoint));
    if (found === null) return null;
    this.#used.add(idOf(found));
    return found.value;
  }

  /** Remembers the endpoint assigned by the edge. `asked` is the result of take() for the same tunnel. */
  given(used: Used, asked: string | null): void {
    const id = idOf(used);
    if (asked !== null && asked !== used.value) this.#dropIfOurs({ ...used, value: asked });
    if (this.#isFull && !this.#used.has(id)) return;
    this.#used.add(id);
    this.#change(used, { pid: process.pid, run: this.#run });
  }

  /** Releases an endpoint when its tunnel has ended, so that the next tunnel with the key can use it. */
  released(used: Used): void {
    if (this.#used.delete(idOf(used))) this.#change(used, null);
  }

  /** Releases all names and ports of the client and writes immediately, because the process may exit next. */
  close(): void {
    for (const endpoint of this.#current()) this.released(endpoint);
    runsHere.delete(this.#run);
    for (let tries = 0; tries < ASSIGNED_LOCK_TRIES && !this.#write(); tries += 1) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ASSIGNED_LOCK_PAUSE_MS);
    }
    this.#waiting?.cancel();
  }

  /** True if remembering another name or port would evict one that this client uses. */
  get #isFull(): boolean {
    return this.#used.size >= ASSIGNED_ENDPOINTS_MAX;
  }

  #forget(key: string): void {
    this.#forgotten.add(key);
    for (const endpoint of this.#current()) if (endpoint.key === key) this.#dropIfOurs(endpoint);
  }

  /**
   * Forgets an endpoint that the edge did not assign, because it is in use or belongs to another account. Kept if another running client
   * uses it.
   */
  #dropIfOurs(endpoint: Used): void {
    const id = idOf(endpoint);
    this.#used.delete(id);
    const known = this.#current().find((one) => idOf(one) === id);
    if (known === undefined || this.#isTaken(known)) return;
    this.#changes.set(id, null);
    this.#writeSoon();
  }

  #isTaken({ key, value, holder }: RememberedEndpoint): boolean {
    if (this.#used.has(idOf({ key, value }))) return true;
    if (holder === null || holder.run === this.#run) return false;
    return holder.pid === process.pid ? runsHere.has(holder.run) : isProcessAlive(holder.pid);
  }

  #change({ key, value, name }: Used, holder: Holder | null): void {
    this.#changes.set(idOf({ key, value }), { key, value, name, usedAt: this.#options.clock.now(), holder });
    this.#writeSoon();
  }

  /** Returns the endpoints, reading the file at most once per ASSIGNED_WRITE_MS, because a client may open thousands of tunnels at once. */
  #current(): readonly RememberedEndpoint[] {
    const now = this.#options.clock.monotonic();
    if (this.#read === null || now - this.#read.at > ASSIGNED_WRITE_MS) {
      this.#read = { at: now, all: readFile(this.#path) };
    }
    return mergeRemembered(this.#read.all, this.#changes);
  }

  #writeSoon(): void {
    this.#waiting ??= this.#options.clock.setTimeout(() => {
      this.#waiting = null;
      if (!this.#write()) this.#writeSoon();
    }, ASSIGNED_WRITE_MS);
    this.#waiting.unref?.();
  }

  /** Writes the changed names and ports to the file. Returns false if another client holds the lock. */
  #write(): boolean {
    if (this.#changes.size === 0) return true;
    const { dir, logger } = this.#options;
    try {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      const lock = takeLock(`${this.#path}.lock`, CLIENT_LIMITS.FOREIGN_SLOT_STALE_AFTER_MS);
      if (lock === null) return false;
      try {
        const all = mergeRemembered(readFile(this.#path), this.#changes);
        writeAtomicSync(this.#path, JSON.stringify({ version: 1, endpoints: all }), { soleWriter: true });
      } finally {
        lock.release();
      }
      this.#read = null;
    } catch (error) {
      // A write error, such as a full disk, must not end a tunnel.
      logger.warn({ file: this.#path, reason: String(error) }, 'cannot save assigned names and ports');
    }
    this.#changes.clear();
    return true;
  }
}

/** Reads the file with remembered names and ports. A missing, damaged or incompatible file counts as empty. */
const readFile = (path: string): readonly RememberedEndpoint[] => {
  try {
    const { version, endpoints } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
    return version === 1 && Array.isArray(endpoints) ? endpoints.filter(isRemembered) : [];
  } catch {
    return [];
  }
};

const isRemembered = (value: unknown): value is RememberedEndpoint => {
  const { key, value: endpoint, name, usedAt, holder } = (value ?? {}) as Record<string, unknown>;
  const { pid, run } = (holder ?? { pid: 0, run: '' }) as Record<string, unknown>;
  return (
    typeof key === 'string' &&
    typeof endpoint === 'string' &&
    typeof name === 'string' &&
    typeof usedAt === 'number' &&
    Number.isSafeInteger(pid) &&
    typeof run === 'string'
  );
};
