import { createLogger, type Logger } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import { DatabaseAway } from './database-away.ts';
import { DatabaseWatch } from './database-watch.ts';

const away = (): DatabaseAway => new DatabaseAway(new Error('connect ECONNREFUSED'));

const watchOver = () => {
  const clock = new FakeClock();
  const lines: string[] = [];
  const say = (_: object, message: string): void => void lines.push(message);
  const silent = createLogger({ level: 'silent', format: 'json' });
  const logger: Logger = {
    ...silent,
    droppedLines: 0,
    child: () => silent,
    flush: async () => {},
    debug: say,
    info: say,
    warn: say,
    error: say,
  };
  const fixture = { failure: null as Error | null, prepared: 0, probed: 0 };
  const meet = (what: 'prepared' | 'probed') => async () => {
    fixture[what] += 1;
    if (fixture.failure !== null) throw fixture.failure;
  };
  const watch = new DatabaseWatch({ prepare: meet('prepared'), probe: meet('probed'), clock, logger });
  return { clock, fixture, watch, lines };
};

describe('the database watch', () => {
  it('prepares an available database and then stops checking', async () => {
    const { clock, fixture, watch } = watchOver();
    await watch.start();
    expect([watch.isPrepared, clock.pendingTimers]).toEqual([true, 0]);
    expect(fixture).toMatchObject({ prepared: 1, probed: 0 });
  });

  it('waits for an unavailable database at startup and logs it once', async () => {
    const { clock, fixture, watch, lines } = watchOver();
    fixture.failure = away();
    await watch.start();
    await clock.advance(5000);
    expect([watch.isPrepared, fixture.prepared]).toEqual([false, 6]);
    fixture.failure = null;
    await clock.advance(1000);
    expect([watch.isPrepared, clock.pendingTimers]).toEqual([true, 0]);
    expect(lines).toEqual(['cannot reach the database; waiting', 'the database is available']);
  });

  it('refuses to start on a database error other than unavailability', async () => {
    const { fixture, watch } = watchOver();
    fixture.failure = new Error('permission denied for schema public');
    await expect(watch.start()).rejects.toThrow('permission denied');
  });

  it('logs one line for an outage, however often it is noticed, and one for the recovery, and stays prepared', async () => {
    const { clock, fixture, watch, lines } = watchOver();
    await watch.start();
    fixture.failure = away();
    for (let n = 0; n < 3; n += 1) watch.noteAway(away());
    await clock.advance(3000);
    expect([watch.isPrepared, fixture.probed]).toEqual([true, 3]);
    fixture.failure = null;
    await clock.advance(1000);
    expect(lines).toEqual(['lost the connection to the database', 'the database is available']);
    expect(clock.pendingTimers).toBe(0);
  });

  it('logs each new reason for an outage, but never the same reason twice in a row', async () => {
    const { clock, fixture, watch, lines } = watchOver();
    fixture.failure = away();
    await watch.start();
    await clock.advance(2000);
    fixture.failure = new DatabaseAway(new Error('unsupported startup parameter: statement_timeout'));
    await clock.advance(3000);
    fixture.failure = null;
    await clock.advance(1000);
    watch.noteAway(away());
    fixture.failure = away();
    await clock.advance(2000);
    expect(lines).toEqual([
      'cannot reach the database; waiting',
      'the database is still not available, for a different reason',
      'the database is available',
      'lost the connection to the database',
    ]);
    await watch.stop();
  });

  it('stops checking when stopped', async () => {
    const { clock, fixture, watch } = watchOver();
    fixture.failure = away();
    await watch.start();
    await watch.stop();
    expect(clock.pendingTimers).toBe(0);
    watch.noteAway(away());
    expect(clock.pendingTimers).toBe(0);
  });
});
