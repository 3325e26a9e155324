// What every backend promises the edge. Used by tests only: each implementation runs it on its own set-up.
import type { Owner } from '@tunnel/core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Backend, Revocation } from './backend.ts';

export interface BackendUnderTest {
  readonly backend: Backend;
  readonly adminToken: string;
  /** Two keys of one account, and one of another. */
  readonly accountKeys: readonly [string, string];
  readonly accountId: string;
  readonly otherKey: string;
  readonly otherAccountId: string;
  /** Absent where keys cannot be revoked while the edge runs. */
  revoke?(key: string): Promise<void>;
  cleanUp?(): Promise<void>;
}

export const backendConformance = (name: string, create: () => Promise<BackendUnderTest>): void => {
  describe(`backend ${name}`, () => {
    let set: BackendUnderTest;

    beforeEach(async () => {
      set = await create();
      await set.backend.start();
    });

    afterEach(async () => {
      await set.backend.stop();
      await set.cleanUp?.();
    });

    const ownerOf = async (token: string): Promise<Owner> => {
      const verdict = await set.backend.verifyKey(token);
      if (!verdict.ok) throw verdict.fault;
      return verdict.owner;
    };

    it('knows the admin token as the operator', async () => {
      expect(await ownerOf(set.adminToken)).toEqual({ kind: 'operator' });
    });

    it('knows every key of an account as that account, each under a key id of its own', async () => {
      const [first, second] = set.accountKeys;
      expect(await ownerOf(first)).toEqual({ kind: 'account', accountId: set.accountId });
      expect(await ownerOf(second)).toEqual({ kind: 'account', accountId: set.accountId });
      expect(await ownerOf(set.otherKey)).toEqual({ kind: 'account', accountId: set.otherAccountId });
      const ids = await Promise.all([first, second, set.otherKey].map((key) => set.backend.verifyKey(key)));
      expect(new Set(ids.map((verdict) => verdict.ok && verdict.keyId)).size).toBe(3);
    });

    it.each(['tnl_unknown', ' ', 'ü'.repeat(500), '\u0000'])('refuses an unknown key for good', async (token) => {
      const verdict = await set.backend.verifyKey(token);
      expect(verdict).toMatchObject({ ok: false, fault: { code: 'AUTH_TOKEN_INVALID', retryable: false } });
    });

    it('refuses a key that is longer, shorter or otherwise cased than the real one', async () => {
      const near = [`${set.adminToken}x`, set.adminToken.slice(0, -1), swapCase(set.adminToken), ` ${set.adminToken}`];
      for (const token of near) expect((await set.backend.verifyKey(token)).ok).toBe(false);
    });

    it('says of no key that it is missing', async () => {
      expect(await set.backend.verifyKey('')).toMatchObject({ ok: false, fault: { code: 'AUTH_TOKEN_MISSING' } });
    });

    it('never puts the key into what it answers', async () => {
      const verdicts = await Promise.all(
        ['tnl_not-a-real-key', set.adminToken, set.otherKey].map((key) => set.backend.verifyKey(key)),
      );
      const text = JSON.stringify(verdicts) + verdicts.map((verdict) => (verdict.ok ? '' : verdict.fault.stack)).join();
      for (const key of ['tnl_not-a-real-key', set.adminToken, set.otherKey]) expect(text).not.toContain(key);
    });

    it('tells every listener of a revocation, until it stops listening', async (context) => {
      if (set.revoke === undefined) return context.skip('keys of this backend change only with a restart');
      const heard: Revocation[] = [];
      const unheard: Revocation[] = [];
      set.backend.onRevoked((revocation) => heard.push(revocation));
      set.backend.onRevoked((revocation) => unheard.push(revocation))();
      const verdict = await set.backend.verifyKey(set.otherKey);
      await set.revoke(set.otherKey);
      await expect.poll(() => heard.map((revocation) => revocation.keyId)).toEqual([verdict.ok && verdict.keyId]);
      expect(unheard).toEqual([]);
      expect((await set.backend.verifyKey(set.otherKey)).ok).toBe(false);
    });
  });
};

const swapCase = (text: string): string =>
  text.replace(/[a-zA-Z]/, (letter) => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()));
