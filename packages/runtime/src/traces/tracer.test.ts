// Tracer and exporter against a collector over real sockets: which requests leave a span, and what a bad collector costs.
import { type CollectorMode, eventually, FakeClock, startTraceCollector, type TraceCollector } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Logger } from '../logger/logger.ts';
import { Secret } from '../secret.ts';
import { parseTraceparent } from './trace-context.rules.ts';
import { createTracer, type TelemetrySettings, Tracer } from './tracer.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const GIVEN = `00-${TRACE}-${PARENT}-01`;

let collector: TraceCollector;
let open: Tracer[] = [];
beforeEach(async () => {
  collector = await startTraceCollector();
});
afterEach(async () => {
  await collector.close();
  for (const tracer of open) void tracer.stop();
  open = [];
});

const recordedLogger = () => {
  const lines: string[] = [];
  const note = (level: string) => (fields: object, message: string) =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const logger = { info: note('info'), warn: note('warn') } as unknown as Logger;
  return { lines, logger };
};

const start = (settings: Partial<TelemetrySettings> = {}) => {
  const clock = new FakeClock();
  const { lines, logger } = recordedLogger();
  const given = {
    otlp_endpoint: collector.url,
    otlp_headers: new Secret(''),
    sample_ratio: 1,
    trust_traceparent: false,
    service_name: 'tunnel',
    ...settings,
  };
  const tracer = createTracer(given, { part: 'edge', version: '1.2.3', clock, logger });
  if (tracer === null) throw new Error('there is no endpoint');
  open.push(tracer);
  /** Adds finished spans. */
  const spans = (count: number): void => {
    for (let at = 0; at < count; at += 1) tracer.begin(null)?.span?.end(clock.monotonic());
  };
  return { tracer, clock, lines, spans };
};

/** Advances the clock in steps until the check passes, because sockets need real time. */
const inSteps = (clock: FakeClock, check: () => void) =>
  eventually(async () => {
    await clock.advance(1000);
    check();
  });

/** Advances the clock until the next batch is due, and waits without the clock, so that no time limit passes on a slow machine. */
const onceDue = async (clock: FakeClock, check: () => void) => {
  await clock.advance(5000);
  await eventually(check);
};

it('creates no tracer without an endpoint', () => {
  const { logger } = recordedLogger();
  const settings = { otlp_headers: new Secret(''), sample_ratio: 1, trust_traceparent: true, service_name: 'tunnel' };
  const deps = { part: 'edge', version: '1.2.3', clock: new FakeClock(), logger };
  expect(createTracer({ ...settings, otlp_endpoint: '' }, deps)).toBeNull();
});

describe('a request', () => {
  it('starts a trace with ids of its own if its caller sent no header', () => {
    const { tracer } = start();
    const first = tracer.begin(null);
    const second = tracer.begin(null);
    const context = parseTraceparent(first?.traceparent ?? '');
    expect(context).toEqual({ traceId: first?.span?.traceId, parentId: first?.span?.spanId, isSampled: true });
    expect([first?.isContinued, first?.span?.parentId]).toEqual([false, null]);
    expect(second?.span?.traceId).not.toBe(first?.span?.traceId);
  });

  it('continues the trace of its caller with a span of its own', () => {
    const begun = start().tracer.begin(GIVEN);
    expect(begun?.isContinued).toBe(true);
    expect(begun?.span).toMatchObject({ traceId: TRACE, parentId: PARENT });
    expect(begun?.traceparent).toBe(`00-${TRACE}-${begun?.span?.spanId}-01`);
    expect(begun?.span?.spanId).not.toBe(PARENT);
  });

  it('leaves no trace if it is not sampled and its caller sent no header', () => {
    expect(start({ sample_ratio: 0 }).tracer.begin(null)).toBeNull();
  });

  it('passes the trace of its caller on with flag 00 if it is not sampled', () => {
    const begun = start({ sample_ratio: 0 }).tracer.begin(GIVEN);
    expect(begun).toMatchObject({ span: null, isContinued: true });
    expect(begun?.traceparent).toMatch(new RegExp(`^00-${TRACE}-(?!${PARENT})[0-9a-f]{16}-00$`));
  });

  it('starts another trace if the header of its caller is invalid', () => {
    const begun = start({ sample_ratio: 0 }).tracer.begin(GIVEN.toUpperCase());
    expect(begun?.isContinued).toBe(false);
    expect(begun?.traceparent).toMatch(/-00$/);
    expect(begun?.traceparent).not.toContain(TRACE);
  });

  it.each([
    [false, false, 0, GIVEN, false],
    [true, false, 0, GIVEN, true],
    [false, true, 0, GIVEN, true],
    [true, false, 1, GIVEN.replace(/01$/, '00'), false],
  ])(
    'is sampled with trust in settings: %s, in the caller: %s, ratio %s, for %s: %s',
    (trusts, caller, ratio, given, sampled) => {
      const { tracer } = start({ sample_ratio: ratio, trust_traceparent: trusts });
      expect(tracer.begin(given, caller)?.span !== null).toBe(sampled);
    },
  );

  it('is sampled by the passed random numbers, and named by the passed ids', () => {
    const clock = new FakeClock();
    const add = vi.fn();
    const randoms = [0.009, 0.01];
    const tracer = new Tracer({
      rules: { ratio: 0.01, trustsFlag: false },
      exporter: { add, stop: async () => {}, dropped: 0 },
      clock,
      random: () => randoms.shift() ?? 0,
      randomHex: (bytes) => 'ab'.repeat(bytes),
    });
    expect(tracer.begin(null)?.traceparent).toBe(`00-${'ab'.repeat(16)}-${'ab'.repeat(8)}-01`);
    expect(tracer.begin(null)).toBeNull();
  });
});

describe('delivery', () => {
  it('sends spans within 5 s, as JSON to /v1/traces, with the configured headers', async () => {
    const { clock, spans, lines } = start({ otlp_headers: new Secret('api-key=a b'), service_name: 'shop' });
    spans(2);
    await clock.advance(4900);
    expect(collector.batches).toBe(0);
    await onceDue(clock, () => expect(collector.spans).toHaveLength(2));
    expect(collector.last?.line).toBe('POST /v1/traces');
    expect(collector.last?.headers).toMatchObject({ 'content-type': 'application/json', 'api-key': 'a b' });
    expect(lines).toEqual([]);
  });

  it('appends the path to an endpoint with a path', async () => {
    const { clock, spans } = start({ otlp_endpoint: `${collector.url}/tenant/` });
    spans(1);
    await onceDue(clock, () => expect(collector.last?.line).toBe('POST /tenant/v1/traces'));
  });

  it('sends a full batch at once', async () => {
    const { clock, spans } = start();
    spans(512);
    await clock.advance(0);
    await eventually(() => expect(collector.spans).toHaveLength(512));
  });

  it('measures a span by the monotonic clock, whatever happens to the clock of the machine', async () => {
    const { tracer, clock } = start();
    const span = tracer.begin(null)?.span;
    const startedAt = clock.now();
    await clock.advance(250);
    clock.setWallClock(0);
    span?.end(clock.monotonic());
    span?.end(clock.monotonic() + 1e6);
    await onceDue(clock, () => expect(collector.spans).toHaveLength(1));
    const [sent] = collector.spans;
    expect([sent?.startTimeUnixNano, sent?.endTimeUnixNano]).toEqual([
      `${startedAt}000000`,
      `${startedAt + 250}000000`,
    ]);
  });

  it.each<[CollectorMode]>([['hang'], ['drip'], ['never-read'], ['reset'], [503], [429]])(
    'repeats a batch until the collector accepts it, after: %s',
    async (mode) => {
      const { tracer, clock, spans, lines } = start();
      collector.mode = mode;
      spans(3);
      await inSteps(clock, () => expect(collector.batches).toBe(2));
      collector.mode = 'accept';
      await inSteps(clock, () => expect(lines).toHaveLength(2));
      expect(new Set(collector.spans.map(({ spanId }) => spanId)).size).toBe(3);
      expect(lines[0]).toMatch(/^warn traces cannot be delivered/);
      expect(lines[1]).toMatch(/^info traces are delivered again/);
      expect(tracer.dropped).toBe(0);
    },
  );

  it.each<[CollectorMode]>([[400], [401], [404], [500], [302]])(
    'drops and counts a batch that the collector rejects with %s, and delivers the next',
    async (mode) => {
      const { tracer, clock, spans } = start();
      collector.mode = mode;
      spans(3);
      await inSteps(clock, () => expect(tracer.dropped).toBe(3));
      expect(collector.batches).toBe(1);
      collector.mode = 'accept';
      spans(2);
      await inSteps(clock, () => expect(collector.spans).toHaveLength(2));
      expect(tracer.dropped).toBe(3);
    },
  );

  it('accepts a success with an endless body without reading the body', async () => {
    const { tracer, clock, spans, lines } = start();
    collector.mode = 'huge';
    spans(512);
    await clock.advance(0);
    await eventually(() => expect(collector.batches).toBe(1));
    collector.mode = 'accept';
    spans(512);
    await onceDue(clock, () => expect(collector.spans).toHaveLength(512));
    expect([tracer.dropped, lines]).toEqual([0, []]);
  });

  it('never logs a configured header', async () => {
    const { clock, spans, lines } = start({ otlp_headers: new Secret('api-key=very-secret') });
    collector.mode = 500;
    spans(1);
    await inSteps(clock, () => expect(lines).toHaveLength(1));
    expect(lines.join()).not.toContain('very-secret');
  });
});

describe('the end of the process', () => {
  it('delivers the remaining spans', async () => {
    const { tracer, spans } = start();
    spans(600);
    await tracer.stop();
    expect([collector.spans.length, tracer.dropped]).toEqual([600, 0]);
  });

  it('waits at most 2 s for a collector that hangs, and counts the spans as dropped', async () => {
    const { tracer, clock, spans } = start();
    collector.mode = 'hang';
    spans(600);
    const stopped = tracer.stop();
    await eventually(() => expect(collector.batches).toBe(1));
    await clock.advance(2000);
    await stopped;
    expect([tracer.dropped, clock.pendingTimers]).toEqual([600, 0]);
    spans(1);
    expect(clock.pendingTimers).toBe(0);
  });
});
