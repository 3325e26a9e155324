// Routes for health checks: of the process, and of its connection to the database.
import { createRoute } from '@hono/zod-openapi';
import { okBody } from '@tunnel/contract';
import { type Clock, SingleFlight } from '@tunnel/runtime';
import { sql } from 'kysely';
import type { Db } from '../../../db/database.ts';
import { notReady } from '../../../db/database-away.ts';
import { withTimeout } from '../../../timeout.ts';
import type { PlatformApp, RouteContext } from '../../shared/platform-env.ts';
import { json, refused } from '../../shared/route-parts.ts';

/** Time limit of the database probe of GET /health/db. */
const DATABASE_PROBE_MS = 1000;
/** Time for which the result of GET /health/db is reused. */
const DATABASE_PROBE_KNOWN_MS = 1000;

const tags = ['health'];

const healthRoute = createRoute({
  method: 'get',
  path: '/health',
  tags,
  summary: 'Check whether the platform is running',
  security: [],
  responses: { 200: json(okBody, 'The platform is running. The database is not checked.') },
});

const databaseRoute = createRoute({
  method: 'get',
  path: '/health/db',
  tags,
  summary: 'Check whether the database responds within a second',
  security: [],
  responses: { 200: json(okBody, 'It does.'), 503: refused('The database does not respond.', 'DATABASE_AWAY') },
});

export const addHealthRoutes = (app: PlatformApp, { db, clock }: RouteContext): void => {
  const probe = new DatabaseProbe(db, clock);
  app.openapi(healthRoute, (context) => context.json({ ok: true }, 200));
  app.openapi(databaseRoute, async (context) => {
    if (!(await probe.isWell())) throw notReady();
    return context.json({ ok: true }, 200);
  });
};

/** Checks whether the database responds within a second. Concurrent checks share a probe, and a result is reused for a second. */
export class DatabaseProbe {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #probes = new SingleFlight(() => this.#ask());
  #last = { isWell: false, atMs: Number.NEGATIVE_INFINITY };

  constructor(db: Db, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  async isWell(): Promise<boolean> {
    const { isWell, atMs } = this.#last;
    if (this.#clock.monotonic() - atMs < DATABASE_PROBE_KNOWN_MS) return isWell;
    const startedMs = this.#clock.monotonic();
    const found = await this.#probe();
    this.#last = { isWell: found, atMs: startedMs };
    return found;
  }

  #probe(): Promise<boolean> {
    return withTimeout(this.#clock, this.#probes.run(), DATABASE_PROBE_MS).catch(() => false);
  }

  async #ask(): Promise<boolean> {
    try {
      await sql`select 1`.execute(this.#db);
      return true;
    } catch {
      // Every error counts as unavailable: a database that cannot run `select 1` is useless.
      return false;
    }
  }
}
