import { seededRandom } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import {
  DELETION_LOOK_MS,
  DELETION_SETTLE_MS,
  DELETION_TUNNELS_WAIT_MS,
  type DeletionFacts,
  type DeletionStep,
  deletionRetryMs,
  nextDeletionStep,
} from './account-deletion.rules.ts';

const FACTS: DeletionFacts = { begunAt: 1000, openTunnels: 0, endedTunnels: 0, subscriptionEnded: true };
const LATE = 1000 + DELETION_TUNNELS_WAIT_MS;

describe('the deletion of an account', () => {
  it.each<[Partial<DeletionFacts>, number, DeletionStep['kind']]>([
    [{}, 1000 + DELETION_SETTLE_MS, 'done'],
    [{}, 999 + DELETION_SETTLE_MS, 'wait'],
    [{ endedTunnels: 1, openTunnels: 1, subscriptionEnded: false }, 1000, 'erase-log'],
    [{ openTunnels: 1, subscriptionEnded: false }, LATE - 1, 'wait'],
    [{ openTunnels: 1 }, LATE - 1, 'wait'],
    [{ openTunnels: 1, subscriptionEnded: false }, LATE, 'end-subscription'],
    [{ subscriptionEnded: false }, 1000, 'end-subscription'],
    [{ openTunnels: 1 }, LATE, 'erase-open'],
  ])('for %j at %i, the next step is %s', (facts, now, kind) => {
    expect(nextDeletionStep({ ...FACTS, ...facts }, now).kind).toBe(kind);
  });

  it('reports how long to wait if there is no next step yet', () => {
    expect(nextDeletionStep({ ...FACTS, openTunnels: 3 }, 1000)).toEqual({ kind: 'wait', ms: DELETION_LOOK_MS });
    expect(nextDeletionStep(FACTS, 3000)).toEqual({ kind: 'wait', ms: DELETION_SETTLE_MS - 2000 });
  });

  it('retries quickly at first and finally every ten minutes', () => {
    expect([0, 1, 2, 3, 50].map(deletionRetryMs)).toEqual([5000, 5000, 10_000, 20_000, 600_000]);
  });

  it('always completes, and ends the subscription only when no usage can arrive in time', () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      const random = seededRandom(seed);
      const account = { begunAt: 0, openTunnels: at(random, 5), endedTunnels: at(random, 5), subscriptionEnded: false };
      let now = 0;
      let kind: DeletionStep['kind'] = 'wait';
      for (let turn = 0; kind !== 'done'; turn += 1) {
        expect(turn, `seed ${seed}`).toBeLessThan(500);
        now += at(random, 10_000);
        // At random, an edge reports the end of an open tunnel.
        if (account.openTunnels > 0 && random() < 0.2) {
          account.openTunnels -= 1;
          account.endedTunnels += 1;
        }
        kind = nextDeletionStep(account, now).kind;
        if (kind === 'end-subscription')
          expect(account.openTunnels === 0 || now >= DELETION_TUNNELS_WAIT_MS).toBe(true);
        // Simulates a step that is lost because the process died: nothing changes, and the step is repeated.
        if (random() < 0.3) continue;
        if (kind === 'erase-log') account.endedTunnels = Math.max(0, account.endedTunnels - 2);
        if (kind === 'end-subscription') account.subscriptionEnded = true;
        if (kind === 'erase-open') account.openTunnels = 0;
      }
      expect(now).toBeGreaterThanOrEqual(DELETION_SETTLE_MS);
      expect(account).toMatchObject({ openTunnels: 0, endedTunnels: 0, subscriptionEnded: true });
    }
  });
});

const at = (random: () => number, below: number): number => Math.floor(random() * below);
