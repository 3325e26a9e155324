import { createLogger, Secret } from '@tunnel/runtime';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Database } from '../../../db/database.ts';
import { openPlatformFixture, type PlatformFixture } from '../../server/platform.fixture.ts';
import { addLoadBalancingRoutes } from '../usage/usage-routes.ts';
import { addHealthRoutes, DatabaseProbe } from './health-routes.ts';

let fixture: PlatformFixture;
beforeAll(async () => {
  fixture = await openPlatformFixture((app, deps) => {
    addHealthRoutes(app, deps);
    addLoadBalancingRoutes(app, deps);
  });
});
afterAll(() => fixture.close());

describe('health checks', () => {
  it('return 200 without credentials', async () => {
    for (const path of ['/health', '/health/db']) {
      const answer = await fixture.ask(null, 'GET', path);
      expect([path, answer.status, await answer.json()]).toEqual([path, 200, { ok: true }]);
    }
  });

  it('return 503 with Retry-After for an unreachable database, and still 200 for the process', async () => {
    const logger = createLogger({ level: 'silent', format: 'json' });
    const nowhere = new Database({ url: new Secret('postgres://postgres@127.0.0.1:1/none'), logger });
    const lost = await openPlatformFixture((app, deps) => addHealthRoutes(app, { ...deps, db: nowhere.db }));
    try {
      expect((await lost.ask(null, 'GET', '/health')).status).toBe(200);
      const answer = await lost.ask(null, 'GET', '/health/db');
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '2']);
      expect(await answer.json()).toMatchObject({ error: expect.any(String), code: 'DATABASE_AWAY' });
    } finally {
      await nowhere.close();
      await lost.close();
    }
  });

  it('give up on the database after a second, and share one query between concurrent callers', async () => {
    const clock = new FakeClock();
    const logger = createLogger({ level: 'silent', format: 'json' });
    const narrow = new Database({ url: fixture.database.url, logger, connections: 1 });
    // Takes the only connection of the pool.
    const only = await narrow.pool.connect();
    let released = false;
    try {
      const probe = new DatabaseProbe(narrow.db, clock);
      const answers = Promise.all([probe.isWell(), probe.isWell()]);
      await eventually(() => expect(narrow.pool.waitingCount).toBe(1));
      await clock.advance(1000);
      expect(await answers).toEqual([false, false]);
      expect(narrow.pool.waitingCount).toBe(1);
      only.release();
      released = true;
      await eventually(async () => expect(await probe.isWell()).toBe(true));
      expect(clock.pendingTimers).toBe(0);
    } finally {
      if (!released) only.release();
      await narrow.close();
    }
  });
});

describe('GET /load-balancing/groups', () => {
  it('lists groups in order, and regions that did not respond', async () => {
    const pool = (region_id: string, label: string) => ({
      protocol: 'http',
      label,
      name: label,
      key_hash_short: '01234567',
      region_id,
      members: [],
      member_count: 0,
      healthy_count: 0,
      unhealthy_count: 0,
      total_dispatches: 0,
      total_health_failures: 0,
    });
    fixture.edges.answer = {
      groups: [pool('eu', 'b'), pool('us', 'a'), pool('eu', 'a')],
      warnings: ['region us2 does not answer', 'region ap does not answer'],
    };
    const answer = await fixture.ask(fixture.alice, 'GET', '/load-balancing/groups');
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({
      groups: [pool('eu', 'a'), pool('eu', 'b'), pool('us', 'a')],
      warnings: ['region ap does not answer', 'region us2 does not answer'],
    });
    expect(fixture.edges.asked.at(-1)).toEqual([fixture.alice.userId]);
    expect((await fixture.ask(null, 'GET', '/load-balancing/groups')).status).toBe(401);
  });
});
