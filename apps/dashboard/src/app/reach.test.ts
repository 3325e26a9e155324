import { Fault } from '@tunnel/errors';
import { expect, it } from 'vitest';
import { Reach } from './reach.ts';

const scene = () => {
  const waiting: (() => void)[] = [];
  const seen = { back: 0, changes: 0, probes: 0 };
  let isThere = false;
  const reach = new Reach(
    {
      probe: async () => {
        seen.probes += 1;
        if (!isThere) throw new Error('away');
      },
      after: (_ms, act) => waiting.push(act),
    },
    () => {
      seen.back += 1;
    },
  );
  reach.subscribe(() => {
    seen.changes += 1;
  });
  const comeBack = (): void => {
    isThere = true;
  };
  const turn = async (): Promise<void> => {
    for (const act of waiting.splice(0)) act();
    await new Promise<void>((resolve) => setImmediate(resolve));
  };
  return { reach, seen, turn, comeBack };
};

it.each(['CLIENT_PLATFORM_UNREACHABLE', 'DATABASE_AWAY'] as const)(
  '%s means away, until a probe succeeds',
  async (code) => {
    const { reach, seen, turn, comeBack } = scene();
    reach.noteError(new Fault(code));
    reach.noteError(new Fault(code));
    expect(reach.isAway()).toBe(true);
    await turn();
    await turn();
    expect([reach.isAway(), seen.probes, seen.back]).toEqual([true, 2, 0]);
    comeBack();
    await turn();
    expect([reach.isAway(), seen.back, seen.changes]).toEqual([false, 1, 2]);
    await turn();
    expect(seen.probes).toBe(3);
  },
);

it.each([new Fault('LOGIN_BUSY'), new Fault('EDGE_AWAY'), new Fault('KEY_UNKNOWN'), new Error('a bug')])(
  '%s is no absence',
  (error) => {
    const { reach } = scene();
    reach.noteError(error);
    expect(reach.isAway()).toBe(false);
  },
);
