// names.json: whose names are at an edge that runs alone. Written aside and renamed, so that there is always a whole one; one that cannot be read is
// kept beside it, for whoever can mend it.

import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { NameOwnership } from '@tunnel/rules/names';
import { type Clock, type Logger, readBounded, SingleFlight, type Timer, writeAtomic } from '@tunnel/runtime';
import * as z from 'zod';
import { NAMES_FILE_MAX_BYTES, NAMES_ROWS_PER_TURN } from './limits.ts';
import { NAME_KINDS, type NameKind } from './reserved-names.ts';

/** how long changes of names.json are gathered before it is written anew */
const NAMES_JSON_WRITE_MS = 100;
/** and so many times as long as the last writing took, when that is longer: a large file costs no more time than a small one */
const NAMES_JSON_WRITE_PAUSE = 10;
/** between tries to write the file to a disk that does not take it */
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
  /** As they are now. */
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
      /** Absent from files of versions that did not tell assigned names from chosen ones. */
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

  /** Those of the last run; what it had open has ended by now. */
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

  /** Soon, with whatever else changes until then. */
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
    // What changes meanwhile waits for its own turn, and is written at once only when it is the last.
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
        // Tried again later, or at the end: names without a change in between must not be missing in the file.
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
    // A run that was killed had no time to say when.
    lastUsedAt: in_use ? now : msOf(last_used_at),
    ...(assigned === true ? { isAssigned: assigned } : {}),
  };
  const ownership: NameOwnership =
    state === 'released'
      ? { kind: state, ...owned, releasedAt: msOf(released_at) ?? now }
      : { kind: state, ...owned, lastUsedAt: owned.lastUsedAt ?? (state === 'held' ? now : null) };
  return { kind, label, ownership };
};

/** In pieces that take no time; each row on a line of its own. */
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
