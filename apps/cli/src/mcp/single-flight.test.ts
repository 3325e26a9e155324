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

describe('an attempt that several wait for', () => {
  it('is made once, and all of them have what came of it', async () => {
    const { made, shared } = attempts();
    const { signal } = new AbortController();
    const all = [shared.take(signal), shared.take(signal), shared.take(signal)];
    made[0]?.settle('connected');
    expect([await Promise.all(all), made.length]).toEqual([['connected', 'connected', 'connected'], 1]);
  });

  it('goes on without the one that leaves, and ends with the last', async () => {
    const { made, shared } = attempts();
    const [first, last] = [new AbortController(), new AbortController()];
    const taken = [shared.take(first.signal), shared.take(last.signal)];
    first.abort(new Error('left'));
    await expect(taken[0]).rejects.toThrow('left');
    expect(made[0]?.signal.aborted).toBe(false);
    last.abort(new Error('left, too'));
    await expect(taken[1]).rejects.toThrow('left, too');
    expect(made[0]?.signal.aborted).toBe(true);
  });

  it('that failed, or that everybody left, is followed by a new one', async () => {
    const { made, shared } = attempts();
    const leaving = new AbortController();
    const left = shared.take(leaving.signal);
    leaving.abort(new Error('left'));
    await expect(left).rejects.toThrow('left');
    const failed = shared.take(new AbortController().signal);
    made[1]?.fail(new Error('refused'));
    await expect(failed).rejects.toThrow('refused');
    const third = shared.take(new AbortController().signal);
    made[2]?.settle('connected');
    expect(await third).toBe('connected');
    made[0]?.fail(new Error('much later'));
  });

  it('is not begun for one that has left already', async () => {
    const { made, shared } = attempts();
    await expect(shared.take(AbortSignal.abort(new Error('left')))).rejects.toThrow('left');
    expect(made).toEqual([]);
  });
});
