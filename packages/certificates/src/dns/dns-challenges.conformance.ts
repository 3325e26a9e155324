// Conformance suite for every component that sets DNS challenge records, checked through a real resolver.
import { expect, it } from 'vitest';
import type { DnsChallenges } from './dns-challenges.ts';

export interface ChallengesUnderTest {
  readonly challenges: DnsChallenges;
  /** First of two names that the component is allowed to set. */
  readonly name: string;
  readonly otherName: string;
  /** Name with a CNAME that points to `name`. */
  readonly alias: string;
  close(): Promise<void>;
}

const VALUE = 'LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0';
const OTHER = '-Gx_0aVAyXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyj4';

export const challengesConformance = (start: () => Promise<ChallengesUnderTest>): void => {
  const run = (title: string, test: (under: ChallengesUnderTest) => Promise<void>): void => {
    it(title, async () => {
      const under = await start();
      try {
        await test(under);
      } finally {
        await under.close();
      }
    });
  };

  run(
    'a challenge value is visible after it was set, at its name and through a CNAME, and not after it was cleared',
    async (under) => {
      const { challenges, name, otherName, alias } = under;
      expect(await challenges.isSeen(name, VALUE)).toBe(false);
      await challenges.set(name, VALUE);
      expect(await challenges.isSeen(name, VALUE)).toBe(true);
      expect(await challenges.isSeen(name.toUpperCase(), VALUE)).toBe(true);
      expect(await challenges.isSeen(alias, VALUE)).toBe(true);
      expect(await challenges.isSeen(otherName, VALUE)).toBe(false);
      // Challenge values are case-sensitive, unlike names.
      expect(await challenges.isSeen(name, VALUE.toLowerCase())).toBe(false);
      await challenges.clear(name, VALUE);
      expect(await challenges.isSeen(name, VALUE)).toBe(false);
    },
  );

  run('a name can have two challenge values, and each is cleared separately', async ({ challenges, name }) => {
    await challenges.set(name, VALUE);
    await challenges.set(name, OTHER);
    expect([await challenges.isSeen(name, VALUE), await challenges.isSeen(name, OTHER)]).toEqual([true, true]);
    await challenges.clear(name, VALUE);
    expect([await challenges.isSeen(name, VALUE), await challenges.isSeen(name, OTHER)]).toEqual([false, true]);
    await challenges.clear(name, OTHER);
  });

  run('setting or clearing a challenge value twice is not an error', async ({ challenges, name }) => {
    await challenges.set(name, VALUE);
    await challenges.set(name, VALUE);
    await challenges.clear(name, VALUE);
    expect(await challenges.isSeen(name, VALUE)).toBe(false);
    await challenges.clear(name, VALUE);
  });
};
