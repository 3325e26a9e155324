// File names.json: ownership of names on an edge without a platform. Written to a temporary file and renamed, so that the file is always
// complete. An unreadable file is renamed and kept, so that a person can repair the file.

import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { NameOwnership } from '@tunnel/rules/names';
import { type Clock, type Logger, readBounded, SingleFlight, type Timer, writeAtomic } from '@tunnel/runtime';
import * as z from 'zod';
import { NAMES_FILE_MAX_BYTES, NAMES_ROWS_PER_TURN } from './limits.ts';
import { NAME_KINDS, type NameKind } from './reserved-names.ts';

/** Delay between a change and writing names.json, so that a single write covers many changes. */
const NAMES_JSON_WRITE_MS = 100;
/**
 * Minimum delay between writes as a multiple of the last write's duration. A large file then takes no larger share of time than a small
 * file.
 */
const NAMES_JSON_WRITE_PAUSE = 10;
/** Delay before a failed write of names.json is retried. */
const NAMES_JSON_RETRY_MS = 5000;

export interface NameRow {
  readonly kind: NameKind;
  readonly label: string;
  readonly ownership: NameOwnership;
}

export interface StandaloneNamesFileOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly dataDir: string;
  /** Returns the current rows of names.json. */
  readonly rows: () => Iterable<NameRow>;
}

const FILE = 'names.json';

const time = z.iso.datetime().nullable();
const fileSchema = z.object({
  version: z.literal(1),
  names: z.array(
    z.object({
      kind: z.enum(NAME_KINDS),
      label: z.string().min(1),
      state: z.enum(['held', 'reserved', 'released']),
      account: z.string().min(1),
      group_key_hash: z.string().nullable(),
      in_use: z.boolean(),
      /** Whether the edge has chosen the name. Missing in files of older versions, which did not distinguish assigned from chosen names. */
      assigned: z.boolean().optional(),
      last_used_at: time,
      released_at: time,
    }),
  ),
});

type Entry = z.infer<typeof fileSchema>['names'][number];

export class StandaloneNamesFile {
  readonly #options: StandaloneNamesFileOptions;
  readonly #path: string;
  #isStale = false;
  #pauseMs: number = NAMES_JSON_WRITE_MS;
  #waiting: Timer | undefined;
  readonly #writing = new SingleFlight(() => this.#write());
  #isClosed = false;
  #hasFailed = false;

  constructor(options: StandaloneNamesFileOptions) {
    this.#options = options;
    this.#path = join(options.dataDir, FILE);
  }

  /** Reads the names of the last run. Tunnels that were open have ended with that run. */
  async read(now: number): Promise<readonly NameRow[]> {
    try {
      const text = await readBounded(this.#path, NAMES_FILE_MAX_BYTES);
      if (text === null) return [];
      const { names } = fileSchema.parse(JSON.parse(text));
      return names.map((entry) => rowOf(entry, now));
    } catch (error) {
      await this.#putAside(error, now);
      return [];
    }
  }

  /** Schedules a write of names.json after a short delay, which includes further changes. */
  changed(): void {
    if (this.#isClosed) return;
    this.#isStale = true;
    this.#waiting ??= this.#options.clock.setTimeout(() => {
      this.#waiting = undefined;
      void this.#writing.run();
    }, this.#pauseMs);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#waiting?.cancel();
    await this.#writing.run();
  }

  async #write(): Promise<void> {
    const { logger, rows, clock } = this.#options;
    // Changes during a write wait for the next delayed write. Only on close, they are written at once.
    while (this.#isStale && (this.#isClosed || this.#waiting === undefined)) {
      this.#isStale = false;
      const begunAt = clock.monotonic();
      try {
        await writeAtomic(this.#path, piecesOf([...rows()]), { soleWriter: true });
        this.#hasFailed = false;
        const tookMs = clock.monotonic() - begunAt;
        this.#pauseMs = Math.max(NAMES_JSON_WRITE_MS, tookMs * NAMES_JSON_WRITE_PAUSE);
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        const file = this.#path;
        if (!this.#hasFailed)
          logger.error({ file, reason }, 'cannot write the file of names; some may be missing after the next start');
        this.#hasFailed = true;
        // The write is retried later or on close even without further changes, so that the file misses no name.
        this.#isStale = true;
        this.#pauseMs = NAMES_JSON_RETRY_MS;
        this.changed();
        return;
      }
    }
  }

  async #putAside(error: unknown, now: number): Promise<void> {
    const reason = error instanceof z.ZodError ? z.prettifyError(error) : String(error);
    const kept = `${this.#path}.damaged-${now}`;
    await rename(this.#path, kept).catch(() => undefined);
    this.#options.logger.error(
      { file: this.#path, kept, reason },
      'cannot read the file of names, so it was moved aside; previously held names are free until used again',
    );
  }
}

const rowOf = (entry: Entry, now: number): NameRow => {
  const { kind, label, state, account, group_key_hash, in_use, assigned, last_used_at, released_at } = entry;
  const owned = {
    ownerId: account,
    groupKeyHash: group_key_hash,
    openTunnels: 0,
    // A killed run could not record when its names were last used, so the current time is used.
    lastUsedAt: in_use ? now : msOf(last_used_at),
    ...(assigned === true ? { isAssigned: assigned } : {}),
  };
  const ownership: NameOwnership =
    state === 'released'
      ? { kind: state, ...owned, releasedAt: msOf(released_at) ?? now }
      : { kind: state, ...owned, lastUsedAt: owned.lastUsedAt ?? (state === 'held' ? now : null) };
  return { kind, label, ownership };
};

/** Formats the file in small pieces, so that the event loop is not blocked. Each row has a separate line. */
function* piecesOf(rows: readonly NameRow[]): Generator<string> {
  yield '{"version":1,"names":[\n';
  for (let from = 0; from < rows.length; from += NAMES_ROWS_PER_TURN) {
    const piece = rows.slice(from, from + NAMES_ROWS_PER_TURN);
    yield `${from === 0 ? '' : ',\n'}${piece.map((row) => JSON.stringify(entryOf(row))).join(',\n')}`;
  }
  yield '\n]}\n';
}

const entryOf = ({ kind, label, ownership }: NameRow): Entry => {
  if (ownership.kind === 'free') throw new Error('a name without an owner has no row');
  return {
    kind,
    label,
    state: ownership.kind,
    account: ownership.ownerId,
    group_key_hash: ownership.groupKeyHash,
    in_use: ownership.openTunnels > 0,
    ...(ownership.isAssigned === true ? { assigned: true } : {}),
    last_used_at: textOf(ownership.lastUsedAt),
    released_at: ownership.kind === 'released' ? textOf(ownership.releasedAt) : null,
  };
};

const msOf = (text: string | null): number | null => (text === null ? null : Date.parse(text));
const textOf = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
