import { describe, expect, it } from 'vitest';
import { SingleFlight } from './single-flight.ts';

interface Made {
  readonly signal: AbortSignal;
  readonly settle: (text: string) => void;
  readonly fail: (error: Error) => void;
}

const attempts = (): { made: Made[]; shared: SingleFlight<string> } => {
  const made: Made[] = [];
  const shared = new SingleFlight<string>(
    (signal) => new Promise((settle, fail) => made.push({ signal, settle, fail })),
  );
  return { made, shared };
};

describe('a shared attempt', () => {
  it('runs once, and every caller gets the result', async () => {
    const { made, shared } = attempts();
    const { signal } = new AbortController();
    const all = [shared.run(signal), shared.run(signal), shared.run(signal)];
    made[0]?.settle('connected');
    expect([await Promise.all(all), made.length]).toEqual([['connected', 'connected', 'connected'], 1]);
  });

  it('continues when one caller leaves, and is aborted when the last caller leaves', async () => {
    const { made, shared } = attempts();
    const first = new AbortController();
    const last = new AbortController();
    const taken = [shared.run(first.signal), shared.run(last.signal)];
    first.abort(new Error('left'));
    await expect(taken[0]).rejects.toThrow('left');
    expect(made[0]?.signal.aborted).toBe(false);
    last.abort(new Error('left, too'));
    await expect(taken[1]).rejects.toThrow('left, too');
    expect(made[0]?.signal.aborted).toBe(true);
  });

  it('is followed by a new attempt if it failed or all callers left', async () => {
    const { made, shared } = attempts();
    const leaving = new AbortController();
    const left = shared.run(leaving.signal);
    leaving.abort(new Error('left'));
    await expect(left).rejects.toThrow('left');
    const failed = shared.run(new AbortController().signal);
    made[1]?.fail(new Error('refused'));
    await expect(failed).rejects.toThrow('refused');
    const third = shared.run(new AbortController().signal);
    made[2]?.settle('connected');
    expect(await third).toBe('connected');
    made[0]?.fail(new Error('much later'));
  });

  it('does not start for a caller with an aborted signal', async () => {
    const { made, shared } = attempts();
    await expect(shared.run(AbortSignal.abort(new Error('left')))).rejects.toThrow('left');
    expect(made).toEqual([]);
  });

  it('keeps running for a caller without a signal', async () => {
    const { made, shared } = attempts();
    const leaving = new AbortController();
    const stays = shared.run();
    const left = shared.run(leaving.signal);
    leaving.abort(new Error('left'));
    await expect(left).rejects.toThrow('left');
    expect([made[0]?.signal.aborted, shared.current === null]).toEqual([false, false]);
    made[0]?.settle('connected');
    expect(await stays).toBe('connected');
  });

  it('is forgotten before the callers continue, so that any caller can start the next attempt', async () => {
    const { made, shared } = attempts();
    const first = shared.run().then(() => shared.current);
    made[0]?.settle('connected');
    expect(await first).toBeNull();
    const { signal } = new AbortController();
    const second = shared.run(signal);
    made[1]?.settle('again');
    expect([await second, made.length, made[1]?.signal.aborted]).toEqual(['again', 2, false]);
  });
});

describe('a shared attempt with keepsResult', () => {
  it('runs once when it succeeds, and again after a failure', async () => {
    const outcomes = [Promise.reject(new Error('away')), Promise.resolve('loaded'), Promise.resolve('never')];
    let made = 0;
    const loaded = new SingleFlight(
      () => {
        made += 1;
        return outcomes[made - 1] as Promise<string>;
      },
      { keepsResult: true },
    );
    await expect(Promise.all([loaded.run(), loaded.run()])).rejects.toThrow('away');
    expect(await Promise.all([loaded.run(), loaded.run()])).toEqual(['loaded', 'loaded']);
    expect(await loaded.run(new AbortController().signal)).toBe('loaded');
    expect([await loaded.run(), made]).toEqual(['loaded', 2]);
  });
});
