import { expect, it } from 'vitest';
import { SeenEvents } from './event-source.fixture.ts';
import { EventStream, SSE_QUEUE_MAX } from './event-stream.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A slow reader of the stream: each call reads one chunk. */
const slowReader = (stream: EventStream) => {
  const reader = stream.body.getReader();
  const decoder = new TextDecoder();
  return async (): Promise<string | null> => {
    const { done, value } = await reader.read();
    return done ? null : decoder.decode(value);
  };
};

it('an event stream sends the retry delay immediately, before any event', async () => {
  const next = slowReader(new EventStream(() => {}));
  expect(await next()).toBe('retry: 2000\n\n');
});

it('an event stream delivers events in order, then ends', async () => {
  let closed = 0;
  const stream = new EventStream(() => {
    closed += 1;
  });
  const seen = new SeenEvents(stream.body);
  stream.send('id: 1\n\n');
  stream.send('id: 2\n\n');
  stream.end();
  stream.send('id: 3\n\n');
  await seen.ended;
  expect(seen.events).toEqual([{ retry: '2000' }, { id: '1' }, { id: '2' }]);
  expect(closed).toBe(1);
});

it('a full queue drops new events and reports their number at the position of the gap', async () => {
  const stream = new EventStream(() => {});
  const next = slowReader(stream);
  await next();
  for (let n = 0; n < SSE_QUEUE_MAX + 5; n += 1) stream.send(`id: ${n}\n\n`);
  for (let n = 0; n < 3; n += 1) expect(await next()).toBe(`id: ${n}\n\n`);
  // The queue has room again, so the next event is queued behind the report of the gap.
  stream.send('id: later\n\n');
  for (let n = 3; n < SSE_QUEUE_MAX; n += 1) expect(await next()).toBe(`id: ${n}\n\n`);
  expect(await next()).toBe('event: lagged\ndata: {"missed":5}\n\n');
  expect(await next()).toBe('id: later\n\n');
});

it('every gap is reported separately, the reports add up to the dropped events, and the queue stays bounded', async () => {
  const stream = new EventStream(() => {});
  const next = slowReader(stream);
  await next();
  const sent = 20_000;
  let told = 0;
  for (let n = 0; n < sent; n += 1) {
    stream.send(`id: ${n}\n\n`);
    if (n % 3 !== 0) continue;
    const text = (await next()) ?? '';
    told += text.startsWith('id') ? 1 : missedIn(text);
  }
  let left = 0;
  stream.end();
  for (let text = await next(); text !== null; text = await next()) {
    told += text.startsWith('id') ? 1 : missedIn(text);
    left += 1;
  }
  expect(told).toBe(sent);
  expect(left).toBeLessThanOrEqual(SSE_QUEUE_MAX + 1);
});

const missedIn = (text: string): number => Number(/"missed":(\d+)/.exec(text)?.[1]);

it('a ping is sent only if nothing else is queued, and pings do not pile up', async () => {
  const stream = new EventStream(() => {});
  const next = slowReader(stream);
  await next();
  for (let n = 0; n < 10; n += 1) stream.ping();
  expect(await next()).toBe(': ping\n\n');
  stream.ping();
  stream.send('id: 1\n\n');
  expect(await next()).toBe('id: 1\n\n');
  stream.end();
  expect(await next()).toBeNull();
});

it('a cut ends the stream immediately, even while a read is pending', async () => {
  let closed = 0;
  const stream = new EventStream(() => {
    closed += 1;
  });
  const next = slowReader(stream);
  await next();
  const waiting = next();
  await turn();
  stream.cut();
  expect(await waiting).toBeNull();
  stream.send('id: 1\n\n');
  stream.cut();
  expect(closed).toBe(1);
});

it('a reader that cancels closes the stream once', async () => {
  let closed = 0;
  const stream = new EventStream(() => {
    closed += 1;
  });
  const seen = new SeenEvents(stream.body);
  await seen.until(1);
  await seen.leave();
  expect(closed).toBe(1);
  stream.send('id: 1\n\n');
  stream.ping();
  stream.end();
  expect(closed).toBe(1);
});
