import { Fault } from '@tunnel/errors';
import { systemClock } from '@tunnel/runtime';
import { eventually, FakeClock } from '@tunnel/testkit';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { LIMITS } from '../../limits.ts';
import { openPlatformFixture, type PlatformFixture } from '../server/platform.fixture.ts';
import { once } from './idempotency.ts';
import { IDEMPOTENCY_LEASE_MS } from './idempotency-store.ts';

let fixture: PlatformFixture;
/** Work done by the request. */
let work: (key: string | null) => Promise<unknown> = async () => ({});
let clock: { now(): number } = systemClock;
/** Speed of the clock that bounds the waiting time. */
let speed = 1;
const done: (string | null)[] = [];

beforeAll(async () => {
  fixture = await openPlatformFixture((app, deps) => {
    app.use('/order/*', deps.requireUser);
    const { db } = deps;
    app.post('/order/:operation', async (context) => {
      const { operation } = context.req.param();
      const input = await context.req.text();
      const execute = async (key: string | null) => {
        done.push(key);
        return work(key);
      };
      const timed = { ...systemClock, now: () => clock.now(), monotonic: () => speed * systemClock.monotonic() };
      return context.json((await once({ db, clock: timed }, context, { operation, input, execute })) as object, 200);
    });
  });
});
afterEach(async () => {
  done.length = 0;
  work = async () => ({});
  clock = systemClock;
  speed = 1;
  await sql`truncate idempotency_keys`.execute(fixture.database.db);
});
afterAll(() => fixture.close());

const order = async (key: string | null, { operation = 'a', body = '', user = fixture.alice } = {}) => {
  const answer = await fixture.app.request(`/order/${operation}`, {
    method: 'POST',
    headers: { 'x-user': user.userId, ...(key === null ? {} : { 'idempotency-key': key }) },
    ...(body === '' ? {} : { body }),
  });
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Record<string, unknown> };
};
const numbered = () => {
  let number = 0;
  work = async () => ({ number: (number += 1) });
};

describe('a request with an Idempotency-Key', () => {
  it('runs once and gets the same response each time', async () => {
    numbered();
    const answers = [await order('k'), await order('k'), await order('k')];
    expect(answers.map(({ status, body }) => [status, body])).toEqual([...[1, 2, 3].map(() => [200, { number: 1 }])]);
    expect(done).toEqual(['k']);
  });

  it('stores neither its key nor its response in readable form', async () => {
    work = async () => ({ client_secret: 'open-sesame' });
    await order('my-own-key');
    const rows = await fixture.database.db.selectFrom('idempotency_keys').selectAll().execute();
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toMatch(/open-sesame|client_secret|my-own-key/);
  });

  it('is a new request with another key, from another account, or without a key', async () => {
    numbered();
    await order('k');
    expect((await order('l')).body).toEqual({ number: 2 });
    expect((await order('k', { user: fixture.bob })).body).toEqual({ number: 3 });
    expect((await order(null)).body).toEqual({ number: 4 });
    expect((await order(null)).body).toEqual({ number: 5 });
    expect((await order('k')).body).toEqual({ number: 1 });
  });

  it('runs once if sent twenty times concurrently', async () => {
    numbered();
    const answers = await Promise.all(Array.from({ length: 20 }, () => order('race')));
    expect(done).toEqual(['race']);
    for (const { status, body } of answers) expect([status, body]).toEqual([200, { number: 1 }]);
  });

  it.each([
    ['another operation', { operation: 'b' }],
    ['another body', { body: 'other' }],
  ])('is rejected for %s, even while the first request is running', async (_, other) => {
    let end = (): void => {};
    work = () =>
      new Promise((resolve) => {
        end = () => resolve({});
      });
    const first = order('k');
    await eventually(() => expect(done).toEqual(['k']));
    const reused = { status: 409, body: { code: 'IDEMPOTENCY_KEY_REUSED' } };
    expect(await order('k', other)).toMatchObject(reused);
    end();
    await first;
    expect(await order('k', other)).toMatchObject(reused);
    expect(done).toEqual(['k']);
  });

  it("also repeats a stored error, each time with the request's own ID", async () => {
    work = async () => {
      throw new Fault('BILLING_NO_PAYMENT_METHOD');
    };
    const first = await order('k');
    const second = await order('k');
    expect([first.status, first.body['code']]).toEqual([400, 'BILLING_NO_PAYMENT_METHOD']);
    expect(second).toMatchObject({ status: 400, body: { code: first.body['code'], error: first.body['error'] } });
    expect(second.body['request_id']).not.toBe(first.body['request_id']);
    expect(done).toEqual(['k']);
  });

  it.each([new Fault('BILLING_PROCESSOR_AWAY'), new Fault('BILLING_PROCESSOR_REFUSED'), new Error('a mistake')])(
    'runs again after %s',
    async (failure) => {
      work = async () => {
        throw failure;
      };
      expect((await order('k')).status).toBeGreaterThanOrEqual(500);
      numbered();
      expect(await order('k')).toMatchObject({ status: 200, body: { number: 1 } });
    },
  );

  it('runs again for one of the waiting requests if the first request fails', async () => {
    work = async () => {
      numbered();
      throw new Fault('BILLING_PROCESSOR_AWAY');
    };
    const statuses = (await Promise.all(Array.from({ length: 6 }, () => order('k')))).map(({ status }) => status);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 200, 200, 200, 200, 503]);
    expect(done).toEqual(['k', 'k']);
  });

  it.each(['', 'x'.repeat(256), 'ä', 'tab\there'])('must have a key of printable ASCII, not %j', async (key) => {
    const headers = { 'x-user': fixture.alice.userId };
    const request = new Request('http://localhost/order/a', { method: 'POST', headers });
    request.headers.set('idempotency-key', key);
    const answer = await fixture.app.request(request);
    expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'IDEMPOTENCY_KEY_INVALID' }]);
    expect(done).toEqual([]);
  });

  it.each(['x', 'x'.repeat(255), 'with inner spaces', '~!"#$%&\''])('can have the key %j', async (key) => {
    expect((await order(key)).status).toBe(200);
    expect(done).toEqual([key]);
  });
});

describe('a stored response', () => {
  it('is kept for 24 hours', async () => {
    numbered();
    const fake = new FakeClock(Date.UTC(2030, 5, 15));
    clock = fake;
    await order('k');
    await fake.advance(LIMITS.IDEMPOTENCY_KEPT_MS - 1);
    expect((await order('k')).body).toEqual({ number: 1 });
    await fake.advance(1);
    expect((await order('k', { operation: 'b' })).body).toEqual({ number: 2 });
  });

  it('is produced once more, by one request, if the first process died', async () => {
    const fake = new FakeClock(Date.UTC(2030, 5, 15));
    clock = fake;
    work = () => new Promise(() => {});
    void order('k');
    await eventually(() => expect(done).toEqual(['k']));
    await fake.advance(IDEMPOTENCY_LEASE_MS);
    numbered();
    const answers = await Promise.all(Array.from({ length: 5 }, () => order('k')));
    expect(answers.map(({ body }) => body)).toEqual(Array.from({ length: 5 }, () => ({ number: 1 })));
    expect(done).toEqual(['k', 'k']);
  });

  it('is waited for up to a limit, then the request gets 409 with Retry-After', async () => {
    work = () => new Promise(() => {});
    void order('k');
    await eventually(() => expect(done).toEqual(['k']));
    speed = 50;
    const { status, body, headers } = await order('k');
    expect([status, body['code'], headers.get('retry-after')]).toEqual([409, 'IDEMPOTENCY_KEY_BUSY', '2']);
  });
});
