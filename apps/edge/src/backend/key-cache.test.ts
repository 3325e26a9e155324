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

describe('an accepted key', () => {
  it('is not checked again for a minute', async () => {
    await keys.verify('a');
    await clock.advance(KEY_FRESH_MS - 1);
    expect(await keys.verify('a')).toMatchObject({ ok: true, owner: { accountId: 'alice' }, keyId: 'key_1' });
    expect(asked).toEqual(['a']);
    await clock.advance(1);
    await keys.verify('a');
    expect(asked).toEqual(['a', 'a']);
  });

  it('stays valid for an hour while the platform is unreachable, then is refused', async () => {
    await keys.verify('a');
    answer = away;
    await clock.advance(KEY_STALE_MS - 1);
    expect((await keys.verify('a')).ok).toBe(true);
    await clock.advance(1);
    expect(await keys.verify('a')).toMatchObject({ ok: false, fault: { code: 'AUTH_BACKEND_AWAY' } });
    answer = async () => GOOD;
    expect((await keys.verify('a')).ok).toBe(true);
  });

  it('is refused once the platform rejects it, even if the platform is unreachable afterwards', async () => {
    await keys.verify('a');
    await clock.advance(KEY_FRESH_MS);
    answer = async () => BAD;
    expect((await keys.verify('a')).ok).toBe(false);
    answer = away;
    await clock.advance(KEY_REFUSED_MS);
    expect((await keys.verify('a')).ok).toBe(false);
  });

  it('is checked once for concurrent clients', async () => {
    const verdicts = await Promise.all(Array.from({ length: 50 }, () => keys.verify('a')));
    expect([verdicts.every(({ ok }) => ok), asked]).toEqual([true, ['a']]);
  });

  it('is checked again if a revocation arrives during the check', async () => {
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

  it('has the rights of the latest account change', async () => {
    await keys.verify('a');
    expect(keys.byKeyId('key_1')?.account.tunnel_limit).toBe(3);
    keys.accountChanged({ account_id: 'alice', plan: 'pro', tunnel_limit: null, allow_custom_subdomains: true });
    expect(keys.byKeyId('key_1')?.account).toMatchObject({ plan: 'pro', tunnel_limit: null });
    keys.accountChanged({ account_id: 'bob', plan: 'free', tunnel_limit: 1, allow_custom_subdomains: true });
    expect(keys.byKeyId('key_1')?.account.plan).toBe('pro');
  });

  it('is checked at its next use after missed changes, and stays valid while the platform is unreachable', async () => {
    await keys.verify('a');
    keys.expireAll();
    answer = away;
    expect((await keys.verify('a')).ok).toBe(true);
    answer = async () => BAD;
    expect((await keys.verify('a')).ok).toBe(false);
  });
});

describe('a rejected key', () => {
  it('is not checked again for a few seconds', async () => {
    answer = async () => BAD;
    await keys.verify('a');
    expect((await keys.verify('a')).ok).toBe(false);
    expect(asked).toHaveLength(1);
    answer = async () => GOOD;
    await clock.advance(KEY_REFUSED_MS);
    expect((await keys.verify('a')).ok).toBe(true);
  });

  it('is not remembered as rejected if the platform was unreachable', async () => {
    answer = away;
    expect(await keys.verify('a')).toMatchObject({ ok: false, fault: { code: 'AUTH_BACKEND_AWAY', retryable: true } });
    answer = async () => GOOD;
    expect((await keys.verify('a')).ok).toBe(true);
  });
});

it('the key cache is bounded: the oldest accepted key is evicted first, and guesses evict no accepted key', async () => {
  answer = async (hash) => (hash.startsWith('good') ? { ...GOOD, key_id: `key of ${hash}` } : BAD);
  await keys.verify('good first');
  for (let n = 0; n < REFUSED_KEYS_MAX + 10; n += 1) await keys.check(`guess ${n}`);
  expect(keys.byKeyId('key of good first')).toBeDefined();
  for (let n = 0; n < EDGE_LIMITS.KNOWN_KEYS_MAX; n += 1) await keys.check(`good ${n}`);
  expect(keys.all()).toHaveLength(EDGE_LIMITS.KNOWN_KEYS_MAX);
  expect(keys.byKeyId('key of good first')).toBeUndefined();
});

it('a burst of clients is checked at a limited rate; clients beyond the queue are told to retry', async () => {
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

describe('an accepted key while the platform is reachable', () => {
  it('stays valid however long ago it was checked; the hour starts when the platform becomes unreachable', async () => {
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

describe('a key restored from an earlier run', () => {
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

  it('is valid for the rest of its hour while the platform is unreachable', async () => {
    startAgain();
    answer = away;
    expect(await next.verify(hash)).toMatchObject({ ok: true, owner: { accountId: 'alice' }, keyId: 'key_1' });
    expect(next.byKeyId('key_1')?.account.tunnel_limit).toBe(3);
    // A sign of life from the platform does not extend trust in a restored key: the key may have been revoked before this run.
    next.heard();
    await clock.advance(KEY_STALE_MS);
    expect(await next.verify(hash)).toMatchObject({ ok: false, fault: { code: 'AUTH_BACKEND_AWAY' } });
  });

  it('is checked at its first use if the platform responds', async () => {
    startAgain();
    answer = async () => BAD;
    expect(await next.verify(hash)).toMatchObject({ ok: false, fault: { code: 'AUTH_TOKEN_INVALID' } });
    expect(next.takeUsedOnTrust()).toEqual([]);
  });

  it('is reported once for a later check if a client used it while the platform was unreachable', async () => {
    startAgain();
    answer = away;
    await next.verify(hash);
    expect(next.takeUsedOnTrust().map(({ keyId }) => keyId)).toEqual(['key_1']);
    expect(next.takeUsedOnTrust()).toEqual([]);
  });

  it('is ignored if its time has expired or lies in the future', async () => {
    const kept = keys.kept();
    answer = away;
    for (const known_at of [clock.now() + 1, clock.now() - KEY_STALE_MS]) {
      next = new KeyCache({ clock, ask: (of) => answer(of) });
      next.restore(kept.map((key) => ({ ...key, known_at })));
      expect((await next.verify(hash)).ok).toBe(false);
    }
  });

  it('is stored without the email address of its owner', () => {
    expect(Object.keys(keys.kept()[0] ?? {}).sort()).toEqual([
      'account',
      'key_id',
      'known_at',
      'token_hash',
      'unlimited',
    ]);
  });
});
