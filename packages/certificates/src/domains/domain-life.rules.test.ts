import { describe, expect, it } from 'vitest';
import {
  type DomainEffect,
  type DomainEvent,
  holderOf,
  NO_DOMAINS,
  nextLookAt,
  type OwnDomains,
  requestedCheckWaitMs,
  transitionDomain,
} from './domain-life.rules.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** One domain name with the accounts that want it, and a clock. */
class Name {
  domains: OwnDomains = NO_DOMAINS;
  now = 0;

  feed(event: DomainEvent): readonly DomainEffect[] {
    const [next, effects] = transitionDomain(this.domains, event, this.now);
    this.domains = next;
    return effects;
  }

  add(id: string): void {
    this.feed({ kind: 'added', id, token: id });
  }

  look(tokens: readonly string[] = [], complete = true): readonly DomainEffect[] {
    const problem = complete ? null : 'ESERVFAIL';
    return this.feed({ kind: 'looked', findings: { tokens, complete }, problem });
  }

  /** Advances the clock to the time of the next check. */
  forward(): void {
    this.now = nextLookAt(this.domains) ?? Number.NaN;
  }

  states(): Record<string, string> {
    return Object.fromEntries(this.domains.map(({ id, state }) => [id, state]));
  }
}

const verified = (id = 'a'): Name => {
  const name = new Name();
  name.add(id);
  name.forward();
  name.look([id]);
  return name;
};

describe('a pending domain', () => {
  it('is checked after 5, 15 and 30 s, every minute for an hour, every 10 minutes to 72 h, and has failed then', () => {
    const name = new Name();
    name.add('a');
    const times: number[] = [];
    while (nextLookAt(name.domains) !== null) {
      name.forward();
      times.push(name.now);
      name.look();
    }
    expect(times.slice(0, 5)).toEqual([5 * SECOND, 15 * SECOND, 30 * SECOND, 90 * SECOND, 150 * SECOND]);
    const often = times.filter((at) => at > 30 * SECOND && at <= HOUR + MINUTE);
    expect(often).toHaveLength(60);
    const seldom = times.filter((at) => at > HOUR + MINUTE);
    expect(new Set(seldom.slice(1).map((at, index) => at - (seldom[index] ?? 0)))).toEqual(new Set([10 * MINUTE]));
    expect(times.at(-2)).toBeLessThan(72 * HOUR);
    expect(times.at(-1)).toBeGreaterThanOrEqual(72 * HOUR);
    expect(times.at(-1)).toBeLessThan(72 * HOUR + 10 * MINUTE);
    expect(name.domains[0]).toMatchObject({ state: 'failed', lastError: 'no record with the token was found' });
  });

  it('stays pending as long as DNS gives no answer', () => {
    const name = new Name();
    name.add('a');
    for (let look = 0; look < 2000; look += 1) {
      name.forward();
      expect(name.look([], false)).toEqual([]);
    }
    expect(name.now).toBeGreaterThan(5 * DAY);
    expect(name.domains[0]).toMatchObject({ state: 'pending', lastError: 'DNS gave no answer: ESERVFAIL' });
    name.forward();
    expect(name.look()).toEqual([{ kind: 'failed', id: 'a' }]);
  });

  it('is verified by the first check that finds its proof, and a failed domain is retried when its owner asks', () => {
    const name = new Name();
    name.add('a');
    name.now = 73 * HOUR;
    expect(name.look()).toEqual([{ kind: 'failed', id: 'a' }]);
    expect(nextLookAt(name.domains)).toBeNull();
    name.now += DAY;
    name.feed({ kind: 'check-asked', id: 'a' });
    expect([name.states(), nextLookAt(name.domains)]).toEqual([{ a: 'pending' }, name.now]);
    name.look();
    expect(nextLookAt(name.domains)).toBe(name.now + 5 * SECOND);
    name.forward();
    expect(name.look(['a'])).toEqual([{ kind: 'verified', id: 'a' }]);
    expect(name.domains[0]).toMatchObject({ verifiedAt: name.now, lastError: null, nextLookAt: name.now + DAY });
  });

  it('can be checked by hand once in 5 s', () => {
    const name = new Name();
    name.add('a');
    const wait = (): number => requestedCheckWaitMs(name.domains[0] as OwnDomains[number], name.now);
    expect(wait()).toBe(0);
    name.look();
    expect(wait()).toBe(5000);
    name.now += 4999;
    expect(wait()).toBe(1);
    name.now += 1;
    expect(wait()).toBe(0);
  });
});

describe('a verified domain', () => {
  it('is checked daily, causes a mail when its proof is first missing, and lapses after 7 days without it', () => {
    const name = verified();
    const begun = name.now + DAY;
    const told: [number, readonly DomainEffect[]][] = [];
    for (let day = 0; day < 9; day += 1) {
      name.forward();
      const effects = name.look();
      if (effects.length > 0) told.push([(name.now - begun) / DAY, effects]);
    }
    expect(told).toEqual([
      [0, [{ kind: 'mail', id: 'a', mail: 'proof-missing' }]],
      [
        7,
        [
          { kind: 'lapsed', id: 'a' },
          { kind: 'mail', id: 'a', mail: 'lapsed' },
        ],
      ],
    ]);
    name.forward();
    expect(name.look(['a'])).toEqual([{ kind: 'verified', id: 'a' }]);
  });

  it('restarts the 7 days when the proof was seen in between, but not when DNS gave no answer', () => {
    const name = verified();
    const days = (...looks: readonly ('seen' | 'gone' | 'away')[]): void => {
      for (const what of looks) {
        name.forward();
        name.look(what === 'seen' ? ['a'] : [], what !== 'away');
      }
    };
    days('gone', 'gone', 'gone', 'gone', 'gone', 'gone', 'seen', 'gone', 'gone', 'gone');
    expect(name.states()).toEqual({ a: 'verified' });
    days('away', 'away', 'away', 'away', 'away', 'away');
    expect(name.states()).toEqual({ a: 'verified' });
    days('gone');
    expect(name.states()).toEqual({ a: 'lapsed' });
  });

  it('causes at most one mail a day when its record comes and goes', () => {
    const name = verified();
    name.add('b');
    const mails: DomainEffect[] = [];
    for (let look = 0; look < 200; look += 1) {
      name.now += 5 * MINUTE;
      mails.push(...name.look(look % 2 === 0 ? [] : ['a']));
    }
    expect(mails).toEqual([{ kind: 'mail', id: 'a', mail: 'proof-missing' }]);
    name.now += DAY;
    expect(name.look()).toHaveLength(1);
  });
});

describe('a domain that two accounts have added', () => {
  it('stays with the account that has a proof, and moves in the check that finds only the other proof', () => {
    const name = verified();
    name.add('b');
    name.forward();
    expect(name.look(['a', 'b'])).toEqual([]);
    expect(name.domains[1]?.lastError).toContain('another account has this name');
    name.forward();
    expect(name.look(['b'])).toEqual([
      { kind: 'mail', id: 'a', mail: 'moved-away' },
      { kind: 'moved', from: 'a', to: 'b' },
    ]);
    expect(name.states()).toEqual({ a: 'lapsed', b: 'verified' });
    expect(holderOf(name.domains)?.id).toBe('b');
    // The name moves back as soon as only the first account's record is found.
    name.forward();
    expect(name.look(['a'])).toContainEqual({ kind: 'moved', from: 'b', to: 'a' });
  });

  it('does not move on an incomplete answer', () => {
    const name = verified();
    name.add('b');
    name.forward();
    expect(name.look(['b'], false)).toEqual([]);
    expect(name.states()).toEqual({ a: 'verified', b: 'pending' });
  });

  it('goes to the account that added it first if both tokens are found and no account has it', () => {
    const name = new Name();
    name.add('a');
    name.add('b');
    name.forward();
    expect(name.look(['b', 'a'])).toEqual([{ kind: 'verified', id: 'a' }]);
    expect(name.feed({ kind: 'removed', id: 'a' })).toEqual([{ kind: 'removed', id: 'a', wasVerified: true }]);
    name.forward();
    expect(name.look(['b', 'a'])).toEqual([{ kind: 'verified', id: 'b' }]);
  });

  it('keeps its state when it is added again', () => {
    const name = verified();
    name.add('a');
    expect(name.states()).toEqual({ a: 'verified' });
  });
});
