import { Fault } from '@tunnel/errors';
import { expect, it } from 'vitest';
import { Reachability } from './reachability.ts';

const setUp = () => {
  const waiting: (() => void)[] = [];
  const counts = { back: 0, changes: 0, probes: 0 };
  let isThere = false;
  const reachability = new Reachability(
    {
      probe: async () => {
        counts.probes += 1;
        if (!isThere) throw new Error('away');
      },
      after: (_ms, act) => waiting.push(act),
    },
    () => {
      counts.back += 1;
    },
  );
  reachability.subscribe(() => {
    counts.changes += 1;
  });
  const comeBack = (): void => {
    isThere = true;
  };
  const turn = async (): Promise<void> => {
    for (const act of waiting.splice(0)) act();
    await new Promise<void>((resolve) => setImmediate(resolve));
  };
  return { reachability, counts, turn, comeBack };
};

it.each(['CLIENT_PLATFORM_UNREACHABLE', 'DATABASE_AWAY'] as const)(
  'the platform counts as away after %s, until a probe succeeds',
  async (code) => {
    const { reachability, counts, turn, comeBack } = setUp();
    reachability.noteError(new Fault(code));
    reachability.noteError(new Fault(code));
    expect(reachability.isAway()).toBe(true);
    await turn();
    await turn();
    expect([reachability.isAway(), counts.probes, counts.back]).toEqual([true, 2, 0]);
    comeBack();
    await turn();
    expect([reachability.isAway(), counts.back, counts.changes]).toEqual([false, 1, 2]);
    await turn();
    expect(counts.probes).toBe(3);
  },
);

it.each([new Fault('LOGIN_BUSY'), new Fault('EDGE_AWAY'), new Fault('KEY_UNKNOWN'), new Error('a bug')])(
  'the platform does not count as away after %s',
  (error) => {
    const { reachability } = setUp();
    reachability.noteError(error);
    expect(reachability.isAway()).toBe(false);
  },
);
