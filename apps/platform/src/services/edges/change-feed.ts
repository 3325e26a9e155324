// Sends changes to every edge that holds its line open. One query serves all that have seen the same.
import { Fault } from '@tunnel/errors';
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import type pg from 'pg';
import type { Db } from '../../db/database.ts';
import { PLATFORM_BOUNDS } from '../../platform-bounds.ts';
import { ChangeCaller } from './change-listener.ts';
import { ChangeLine } from './change-stream.ts';
import { keptChanges, readChanges } from './changes.ts';
import { revokedAmong } from './credentials.ts';

export interface ChangeFeedDeps {
  readonly db: Db;
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class ChangeFeed {
  readonly #deps: ChangeFeedDeps;
  readonly #lines = new Set<ChangeLine>();
  readonly #caller: ChangeCaller;
  #aliveTimer: Timer | null = null;
  #pumping: Promise<void> | null = null;
  #again = false;
  #stopped = false;

  constructor(deps: ChangeFeedDeps) {
    this.#deps = deps;
    this.#caller = new ChangeCaller({ ...deps, onCall: () => this.#wake() });
  }

  start(): void {
    this.#caller.start();
    this.#aliveTimer ??= this.#deps.clock.setInterval(() => {
      for (const line of this.#lines) if (line.checked) line.alive();
    }, PLATFORM_BOUNDS.CHANGES_ALIVE_MS);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#aliveTimer?.cancel();
    for (const line of this.#lines) line.end();
    await this.#caller.stop();
    await this.#pumping;
  }

  /** Everything after `since`, and from then on what comes. */
  open(edgeId: string, since: number): ChangeLine {
    const limit = PLATFORM_BOUNDS.CHANGE_STREAMS_MAX;
    if (this.#stopped || this.#lines.size >= limit) throw new Fault('API_STREAMS_BUSY', { limit, seconds: 5 });
    const line = new ChangeLine(edgeId, since, {
      onCatchUp: () => this.#wake(),
      onGone: (gone) => this.#lines.delete(gone),
    });
    this.#lines.add(line);
    this.#wake();
    return line;
  }

  #wake(): void {
    this.#again = true;
    this.#pumping ??= this.#pump().finally(() => {
      this.#pumping = null;
    });
  }

  /** Fails with the database, and is called again by the caller's own clock. */
  async #pump(): Promise<void> {
    try {
      while (this.#again && this.#lines.size > 0) {
        this.#again = false;
        await this.#endRevoked();
        await this.#checkNew();
        for (const [cursor, lines] of this.#readyByCursor()) await this.#sendAfter(cursor, lines);
      }
    } catch (error) {
      this.#deps.logger.debug({ reason: (error as Error).message }, 'changes cannot be read right now');
    }
  }

  async #sendAfter(cursor: number, lines: readonly ChangeLine[]): Promise<void> {
    const { db, clock } = this.#deps;
    const wanted = { after: cursor, limit: PLATFORM_BOUNDS.CHANGES_PAGE, now: clock.now() };
    const { changes, last } = await readChanges(db, wanted);
    if (last === null) return;
    for (const line of lines) {
      line.cursor = last;
      line.send(changes);
    }
    // There may be more, for those that have read these.
    this.#again = true;
  }

  /** A line that comes with a number that nobody can go on from is told so, and goes on from the latest. */
  async #checkNew(): Promise<void> {
    const fresh = [...this.#lines].filter((line) => !line.checked);
    if (fresh.length === 0) return;
    const { oldest, latest } = await keptChanges(this.#deps.db);
    for (const line of fresh) {
      line.checked = true;
      if (line.cursor >= oldest - 1 && line.cursor <= latest) {
        line.alive();
        continue;
      }
      line.cursor = latest;
      line.send([{ kind: 'forget', id: latest }]);
    }
  }

  async #endRevoked(): Promise<void> {
    const edgeIds = [...new Set([...this.#lines].map((line) => line.edgeId))];
    const revoked = await revokedAmong(this.#deps.db, edgeIds);
    for (const line of this.#lines) if (revoked.has(line.edgeId)) line.end();
  }

  #readyByCursor(): Map<number, ChangeLine[]> {
    const groups = new Map<number, ChangeLine[]>();
    for (const line of this.#lines) {
      if (!line.checked) continue;
      if (!line.isReady) {
        line.passOver();
        continue;
      }
      const group = groups.get(line.cursor);
      if (group === undefined) groups.set(line.cursor, [line]);
      else group.push(line);
    }
    return groups;
  }
}
