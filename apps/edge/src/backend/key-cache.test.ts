import type { KeyAnswer } from '@tunnel/contract';
import { FakeClock } from '@tunnel/testkit';
import { beforeEach, describe, expect, it } from 'vitest';
import { EDGE_LIMITS } from '../limits.ts';
import {
  KEY_CHECKS_PER_SECOND,
  KEY_CHECKS_WAITING_MAX,
  KEY_FRESH_MS,
  KEY_REFUSED_MS,
  KEY_STALE_MS,
  KeyCache,
  REFUSED_KEYS_MAX,
} from './key-cache.ts';

const GOOD: KeyAnswer = {
  ok: true,
  key_id: 'key_1',
  unlimited: false,
  account: { account_id: 'alice', plan: 'free', tunnel_limit: 3, allow_custom_subdomains: false },
};
const BAD: KeyAnswer = { ok: false, code: 'AUTH_TOKEN_INVALID', message: 'invalid API key' };

let clock: FakeClock;
let asked: string[];
let answer: (hash: string) => Promise<KeyAnswer>;
let keys: KeyCache;

beforeEach(() => {
  clock = new FakeClock();
  asked = [];
  answer = async () => GOOD;
  keys = new KeyCache({
    clock,
    ask: (hash) => {
      asked.push(hash);
      return answer(hash);
    },
  });
});

const away = async (): Promise<never> => {
  throw new Error('away');
};

describe('a key that was accepted', () => {
  it('is not asked for again for a minute', async () => {
    await keys.verify('a');
    await clock.advance(KEY_FRESH_MS - 1);
    expect(await keys.verify('a')).toMatchObject({ ok: true, owner: { accountId: 'alice' }, keyId: 'key_1' });
    expect(asked).toEqual(['a']);
    await clock.advance(1);
    await keys.verify('a');
    expect(asked).toEqual(['a', 'a']);
  });

  it('is good for an hour while the platform is away, and not longer', async () => {
    await keys.verify('a');
    answer = away;
    await clock.advance(KEY_STALE_MS - 1);
    expect((await keys.verify('a')).ok).toBe(true);
    await clock.advance(1);
    expect(await keys.verify('a')).toMatchObject({ ok: false, fault: { code: 'AUTH_BACKEND_AWAY' } });
    answer = async () => GOOD;
    expect((await keys.verify('a')).ok).toBe(true);
  });

  it('is refused at once when the platform says so later, away or not', async () => {
    await keys.verify('a');
    await clock.advance(KEY_FRESH_MS);
    answer = async () => BAD;
    expect((await keys.verify('a')).ok).toBe(false);
    answer = away;
    await clock.advance(KEY_REFUSED_MS);
    expect((await keys.verify('a')).ok).toBe(false);
  });

  it('is asked for once by all who come at the same time', async () => {
    const verdicts = await Promise.all(Array.from({ length: 50 }, () => keys.verify('a')));
    expect([verdicts.every(({ ok }) => ok), asked]).toEqual([true, ['a']]);
  });

  it('is asked for again when something was revoked while the answer was under way', async () => {
    let answerFirst: (value: KeyAnswer) => void = () => {};
    answer = () =>
      new Promise((resolve) => {
        answerFirst = resolve;
      });
    const verdict = keys.verify('a');
    keys.forget(({ keyId }) => keyId === 'key_1');
    answer = async () => BAD;
    answerFirst(GOOD);
    expect((await verdict).ok).toBe(false);
    expect(asked).toEqual(['a', 'a']);
  });

  it('has the rights that its account was last told to have', async () => {
    await keys.verify('a');
    expect(keys.byKeyId('key_1')?.account.tunnel_limit).toBe(3);
    keys.accountChanged({ account_id: 'alice', plan: 'pro', tunnel_limit: null, allow_custom_subdomains: true });
    expect(keys.byKeyId('key_1')?.account).toMatchObject({ plan: 'pro', tunnel_limit: null });
    keys.accountChanged({ account_id: 'bob', plan: 'free', tunnel_limit: 1, allow_custom_subdomains: true });
    expect(keys.byKeyId('key_1')?.account.plan).toBe('pro');
  });

  it('is in doubt after changes were missed: asked for at its next use, and standing while nobody answers', async () => {
    await keys.verify('a');
    keys.expireAll();
    answer = away;
    expect((await keys.verify('a')).ok).toBe(true);
    answer = async () => BAD;
    expect((await keys.verify('a')).ok).toBe(false);
  });
});

describe('a key that was refused', () => {
  it('is not asked for again for a moment', async () => {
    answer = async () => BAD;
    await keys.verify('a');
    expect((await keys.verify('a')).ok).toBe(false);
    expect(asked).toHaveLength(1);
    answer = async () => GOOD;
    await clock.advance(KEY_REFUSED_MS);
    expect((await keys.verify('a')).ok).toBe(true);
  });

  it('is never remembered as refused because nobody answered', async () => {
    answer = away;
    expect(await keys.verify('a')).toMatchObject({ ok: false, fault: { code: 'AUTH_BACKEND_AWAY', retryable: true } });
    answer = async () => GOOD;
    expect((await keys.verify('a')).ok).toBe(true);
  });
});

it('remembers a bounded number of keys: the oldest goes first, and guesses push nothing out', async () => {
  answer = async (hash) => (hash.startsWith('good') ? { ...GOOD, key_id: `key of ${hash}` } : BAD);
  await keys.verify('good first');
  for (let n = 0; n < REFUSED_KEYS_MAX + 10; n += 1) await keys.check(`guess ${n}`);
  expect(keys.byKeyId('key of good first')).toBeDefined();
  for (let n = 0; n < EDGE_LIMITS.KNOWN_KEYS_MAX; n += 1) await keys.check(`good ${n}`);
  expect(keys.all()).toHaveLength(EDGE_LIMITS.KNOWN_KEYS_MAX);
  expect(keys.byKeyId('key of good first')).toBeUndefined();
});

it('is asked at a bounded pace by clients that all come at once: the rest waits, and is refused for now when too many do', async () => {
  const verdicts = Array.from({ length: KEY_CHECKS_PER_SECOND + KEY_CHECKS_WAITING_MAX + 1 }, (_, n) =>
    keys.verify(`key ${n}`),
  );
  expect(await verdicts.at(-1)).toMatchObject({ ok: false, fault: { code: 'AUTH_BACKEND_AWAY', retryable: true } });
  expect(asked).toHaveLength(KEY_CHECKS_PER_SECOND);
  await clock.advance(1000);
  expect(asked).toHaveLength(2 * KEY_CHECKS_PER_SECOND);
  await clock.advance((1000 * KEY_CHECKS_WAITING_MAX) / KEY_CHECKS_PER_SECOND);
  const answers = await Promise.all(verdicts);
  expect(answers.filter(({ ok }) => ok)).toHaveLength(KEY_CHECKS_PER_SECOND + KEY_CHECKS_WAITING_MAX);
});

describe('while the platform is heard', () => {
  it('an accepted key stays good, however long ago it was asked for; the hour begins when it goes away', async () => {
    await keys.verify('a');
    await clock.advance(5 * KEY_STALE_MS);
    keys.heard();
    answer = away;
    await clock.advance(KEY_STALE_MS - 1);
    expect((await keys.verify('a')).ok).toBe(true);
    await clock.advance(1);
    expect(await keys.verify('a')).toMatchObject({ ok: false, fault: { code: 'AUTH_BACKEND_AWAY' } });
  });
});

describe('a key of an earlier run', () => {
  const hash = 'a'.repeat(64);
  let next: KeyCache;

  const startAgain = (): void => {
    next = new KeyCache({ clock, ask: (of) => answer(of) });
    next.restore(keys.kept());
  };

  beforeEach(async () => {
    await keys.verify(hash);
    await clock.advance(10_000);
  });

  it('is good while the platform is away, for what is left of its hour', async () => {
    startAgain();
    answer = away;
    expect(await next.verify(hash)).toMatchObject({ ok: true, owner: { accountId: 'alice' }, keyId: 'key_1' });
    expect(next.byKeyId('key_1')?.account.tunnel_limit).toBe(3);
    // That somebody was heard says nothing of it: whoever revoked it did so before.
    next.heard();
    await clock.advance(KEY_STALE_MS);
    expect(await next.verify(hash)).toMatchObject({ ok: false, fault: { code: 'AUTH_BACKEND_AWAY' } });
  });

  it('is asked for at its first use where the platform answers', async () => {
    startAgain();
    answer = async () => BAD;
    expect(await next.verify(hash)).toMatchObject({ ok: false, fault: { code: 'AUTH_TOKEN_INVALID' } });
    expect(next.takeUsedOnTrust()).toEqual([]);
  });

  it('that was used on trust is to be asked for, once', async () => {
    startAgain();
    answer = away;
    await next.verify(hash);
    expect(next.takeUsedOnTrust().map(({ keyId }) => keyId)).toEqual(['key_1']);
    expect(next.takeUsedOnTrust()).toEqual([]);
  });

  it('is not believed when its time is over, or of later than now', async () => {
    const kept = keys.kept();
    answer = away;
    for (const known_at of [clock.now() + 1, clock.now() - KEY_STALE_MS]) {
      next = new KeyCache({ clock, ask: (of) => answer(of) });
      next.restore(kept.map((key) => ({ ...key, known_at })));
      expect((await next.verify(hash)).ok).toBe(false);
    }
  });

  it('has no address of its owner with it', () => {
    expect(Object.keys(keys.kept()[0] ?? {}).sort()).toEqual([
      'account',
      'key_id',
      'known_at',
      'token_hash',
      'unlimited',
    ]);
  });
});
