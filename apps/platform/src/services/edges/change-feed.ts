// Sends changes to every edge with an open stream. Edges at the same position share a query.
import { Fault } from '@tunnel/errors';
import { type Clock, type Logger, SingleFlight, type Timer } from '@tunnel/runtime';
import type pg from 'pg';
import type { Db } from '../../db/database.ts';
import { changeRange } from '../shared/edge-changes.ts';
import { ChangeListener } from './change-listener.ts';
import { ChangeStream } from './change-stream.ts';
import { loadEdgeRegions, revokedAmong } from './credentials.ts';
import { readChanges } from './read-changes.ts';

/** Maximum number of concurrent change streams. */
const CHANGE_STREAMS_MAX = 2000;
/** Interval of keep-alive lines on a change stream, by which both sides detect a dead connection. */
const CHANGES_ALIVE_MS = 10_000;
/** Maximum number of changes read from the database per query. */
const CHANGES_PAGE = 500;

export interface ChangeFeedOptions {
  readonly db: Db;
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class ChangeFeed {
  readonly #options: ChangeFeedOptions;
  readonly #streams = new Set<ChangeStream>();
  readonly #listener: ChangeListener;
  #aliveTimer: Timer | null = null;
  readonly #pumps = new SingleFlight(() => this.#pump());
  #again = false;
  #stopped = false;

  constructor(options: ChangeFeedOptions) {
    this.#options = options;
    this.#listener = new ChangeListener({ ...options, onCall: () => this.#wake() });
  }

  start(): void {
    this.#listener.start();
    this.#aliveTimer ??= this.#options.clock.setInterval(() => {
      for (const stream of this.#streams) if (stream.checked) stream.alive();
    }, CHANGES_ALIVE_MS);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#aliveTimer?.cancel();
    for (const stream of this.#streams) stream.end();
    await this.#listener.stop();
    await this.#pumps.current;
  }

  /** Opens a stream of all changes after number `since`, including future changes. */
  open(edgeId: string, since: number): ChangeStream {
    const limit = CHANGE_STREAMS_MAX;
    if (this.#stopped || this.#streams.size >= limit) throw new Fault('API_STREAMS_BUSY', { limit, seconds: 5 });
    const stream = new ChangeStream(edgeId, since, {
      onCatchUp: () => this.#wake(),
      onGone: (gone) => this.#streams.delete(gone),
    });
    this.#streams.add(stream);
    this.#wake();
    return stream;
  }

  #wake(): void {
    this.#again = true;
    void this.#pumps.run();
  }

  /** Sends new changes to the streams. A database error ends the run; the listener's timer starts the next run. */
  async #pump(): Promise<void> {
    try {
      while (this.#again && this.#streams.size > 0) {
        this.#again = false;
        await this.#endRevoked();
        await this.#checkNew();
        for (const [cursor, streams] of this.#readyByCursor()) await this.#sendAfter(cursor, streams);
      }
    } catch (error) {
      this.#options.logger.debug({ reason: (error as Error).message }, 'cannot read changes');
    }
  }

  async #sendAfter(cursor: number, streams: readonly ChangeStream[]): Promise<void> {
    const { db, clock } = this.#options;
    const wanted = { after: cursor, limit: CHANGES_PAGE, now: clock.now() };
    const { changes, last } = await readChanges(db, wanted);
    if (last === null) return;
    for (const stream of streams) {
      stream.cursor = last;
      stream.send(
        changes.filter(({ regionId }) => regionId === '' || regionId === stream.regionId).map(({ change }) => change),
      );
    }
    // The streams may have more changes to read after this page.
    this.#again = true;
  }

  /**
   * Checks the start number of new streams. If the changes after the number are no longer stored, the edge is told to discard its cached
   * data, and the stream continues from the latest change.
   */
  async #checkNew(): Promise<void> {
    const fresh = [...this.#streams].filter((stream) => !stream.checked);
    if (fresh.length === 0) return;
    const regions = await loadEdgeRegions(
      this.#options.db,
      fresh.map(({ edgeId }) => edgeId),
    );
    const { oldest, latest } = await changeRange(this.#options.db);
    for (const stream of fresh) {
      stream.regionId = regions.get(stream.edgeId) ?? '';
      stream.checked = true;
      if (stream.cursor >= oldest - 1 && stream.cursor <= latest) {
        stream.alive();
        continue;
      }
      stream.cursor = latest;
      stream.send([{ kind: 'forget', id: latest }]);
    }
  }

  async #endRevoked(): Promise<void> {
    const edgeIds = [...new Set([...this.#streams].map((stream) => stream.edgeId))];
    const revoked = await revokedAmong(this.#options.db, edgeIds);
    for (const stream of this.#streams) if (revoked.has(stream.edgeId)) stream.end();
  }

  #readyByCursor(): Map<number, ChangeStream[]> {
    const groups = new Map<number, ChangeStream[]>();
    for (const stream of this.#streams) {
      if (!stream.checked) continue;
      if (!stream.isReady) {
        stream.passOver();
        continue;
      }
      const group = groups.get(stream.cursor);
      if (group === undefined) groups.set(stream.cursor, [stream]);
      else group.push(stream);
    }
    return groups;
  }
}
