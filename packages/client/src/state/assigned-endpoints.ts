// The names and ports that edges chose for the tunnels of this user, so that the next start asks for the same ones. All clients of the user share one
// file: each reads it when it opens a tunnel, and writes its changes under a lock, so that none loses what another wrote.
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

/** names and ports chosen by edges that the clients of a user remember, to ask for them again; the longest unused are dropped */
export const ASSIGNED_ENDPOINTS_MAX = 200;
/** changes of that file wait this long for others, and what was read of it counts as long */
export const ASSIGNED_WRITE_MS = 200;
/** how often a client that ends tries to write that file while another client writes it */
const ASSIGNED_LOCK_TRIES = 20;
/** the pause between two of these tries */
const ASSIGNED_LOCK_PAUSE_MS = 5;

/** One name or port that an edge chose. */
export interface RememberedEndpoint {
  /** Server, account, protocol, and the target (of a name) or the tunnel's name (of a port). */
  readonly key: string;
  /** The subdomain, or the port as text. */
  readonly value: string;
  /** Of the tunnel: two tunnels to one target do not swap their addresses. */
  readonly name: string;
  /** Epoch milliseconds. */
  readonly usedAt: number;
  /** The client that uses it now, or was killed while it did; null: its last client has ended. */
  readonly holder: Holder | null;
}

interface Holder {
  readonly pid: number;
  /** Tells two clients of one process apart, and a process from a later one with the same number. */
  readonly run: string;
}

// ---- rules ----

/** The endpoint that was used last for this key and that no other living client uses, of the same tunnel name if there is one; null: there is none. */
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

/** `changes`: null removes an endpoint. The longest unused are dropped beyond the limit. */
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
  /** A folder that only this user can read. */
  readonly dir: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** true: every key that is asked for is forgotten first. */
  readonly isForgetful: boolean;
}

const FILE = 'assigned.json';

/** Clients of this process that have not ended. */
const runsHere = new Set<string>();

export class AssignedEndpoints {
  readonly #options: AssignedEndpointsOptions;
  readonly #path: string;
  readonly #run = randomToken(12);
  /** In use by this client. */
  readonly #used = new Set<string>();
  readonly #forgotten = new Set<string>();
  /** What is not written yet. */
  readonly #changes = new Map<string, RememberedEndpoint | null>();
  #read: { readonly at: number; readonly all: readonly RememberedEndpoint[] } | null = null;
  #waiting: Timer | null = null;

  constructor(options: AssignedEndpointsOptions) {
    this.#options = options;
    this.#path = join(options.dir, FILE);
    runsHere.add(this.#run);
  }

  /** What to ask the edge for; null: nothing is remembered, or other clients use all of it. */
  take(key: string, name: string): string | null {
    if (this.#isFull) return null;
    if (this.#options.isForgetful && !this.#forgotten.has(key)) this.#forget(key);
    const found = chooseRemembered(this.#current(), { key, name }, (endpoint) => this.#isTaken(endpoint));
    if (found === null) return null;
    this.#used.add(idOf(found));
    return found.value;
  }

  /** The edge gave this one. `asked`: what take() said for the same tunnel. */
  given(used: Used, asked: string | null): void {
    const id = idOf(used);
    if (asked !== null && asked !== used.value) this.#dropIfOurs({ ...used, value: asked });
    if (this.#isFull && !this.#used.has(id)) return;
    this.#used.add(id);
    this.#change(used, { pid: process.pid, run: this.#run });
  }

  /** Its tunnel has ended: the next one for this key may have it. */
  released(used: Used): void {
    if (this.#used.delete(idOf(used))) this.#change(used, null);
  }

  /** The client has ended. Writes at once: the process may end right after this. */
  close(): void {
    for (const endpoint of this.#current()) this.released(endpoint);
    runsHere.delete(this.#run);
    for (let tries = 0; tries < ASSIGNED_LOCK_TRIES && !this.#write(); tries += 1) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ASSIGNED_LOCK_PAUSE_MS);
    }
    this.#waiting?.cancel();
  }

  /** More would push out endpoints of this very client. */
  get #isFull(): boolean {
    return this.#used.size >= ASSIGNED_ENDPOINTS_MAX;
  }

  #forget(key: string): void {
    this.#forgotten.add(key);
    for (const endpoint of this.#current()) if (endpoint.key === key) this.#dropIfOurs(endpoint);
  }

  /** The edge refused it, so it is in use elsewhere or another account has it. Where another living client uses it, it stays. */
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

  /** Read again after a moment only: a client may open thousands of tunnels at once. */
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

  /** false: another client is writing just now. */
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
      // A full disk must not end a tunnel.
      logger.warn({ file: this.#path, reason: String(error) }, 'cannot save assigned names and ports');
    }
    this.#changes.clear();
    return true;
  }
}

/** A missing or torn file, or one of another version, is as good as none. */
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
