// Conformance suite for backends: the guarantees every backend gives the edge. Used by tests only; each implementation runs the suite
// with its own setup.

import type { Owner } from '@tunnel/rules/tunnels';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Backend, Revocation } from './backend.ts';
import { askedTunnel, closedTunnel, openedTunnel } from './platform-backend.fixture.ts';
import { countersOf } from './tunnel-counters.fixture.ts';
import { TunnelCounters } from './tunnel-counters.ts';

/** The platform behind a backend: its records as a test sees them, and the changes a test can make. */
export interface OtherSide {
  tunnel(tunnelId: string): { isOpen: boolean; label: string; requests: number; bytes: number } | undefined;
  setLimit(accountId: string, limit: number): Promise<void>;
  closeAccount(accountId: string, code: string, message: string): Promise<void>;
  /** Sets the spend cap the account has reached, as an amount of money. Null lifts the cap. */
  setCap(accountId: string, cap: string | null): Promise<void>;
  /** Verifies a domain for an account. A null account removes the domain; with `keepsTunnels` the domain lapses instead. */
  setDomain(domain: string, accountId: string | null, keepsTunnels?: boolean): Promise<void>;
  goAway(): Promise<void>;
  comeBack(): Promise<void>;
}

export interface BackendUnderTest {
  readonly backend: Backend;
  readonly adminToken: string;
  /**
   * Two API keys of the account. The account has reserved `kept` and `tcp/20042`, and has the domains `shop.example.org` and
   * `*.example.org`.
   */
  readonly accountKeys: readonly [string, string];
  readonly accountId: string;
  readonly otherKey: string;
  readonly otherAccountId: string;
  /** Revokes an API key. Absent if keys cannot be revoked while the edge runs. */
  revoke?(key: string): Promise<void>;
  /** The platform behind the backend. Absent for a backend without a platform. */
  readonly other?: OtherSide;
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

    it('recognizes the admin token as the operator', async () => {
      expect(await ownerOf(set.adminToken)).toEqual({ kind: 'operator' });
    });

    it('recognizes every key of an account, with a separate key id for each key', async () => {
      const [first, second] = set.accountKeys;
      expect(await ownerOf(first)).toEqual({ kind: 'account', accountId: set.accountId });
      expect(await ownerOf(second)).toEqual({ kind: 'account', accountId: set.accountId });
      expect(await ownerOf(set.otherKey)).toEqual({ kind: 'account', accountId: set.otherAccountId });
      const ids = await Promise.all([first, second, set.otherKey].map((key) => set.backend.verifyKey(key)));
      expect(new Set(ids.map((verdict) => verdict.ok && verdict.keyId)).size).toBe(3);
    });

    it.each(['tnl_unknown', ' ', 'ü'.repeat(500), '\u0000'])('rejects an unknown key permanently', async (token) => {
      const verdict = await set.backend.verifyKey(token);
      expect(verdict).toMatchObject({ ok: false, fault: { code: 'AUTH_TOKEN_INVALID', retryable: false } });
    });

    it('rejects a token that is longer, shorter or differs in case from the admin token', async () => {
      const near = [`${set.adminToken}x`, set.adminToken.slice(0, -1), swapCase(set.adminToken), ` ${set.adminToken}`];
      for (const token of near) expect((await set.backend.verifyKey(token)).ok).toBe(false);
    });

    it('reports an empty key as missing', async () => {
      expect(await set.backend.verifyKey('')).toMatchObject({ ok: false, fault: { code: 'AUTH_TOKEN_MISSING' } });
    });

    it('never includes a key in a verdict', async () => {
      const verdicts = await Promise.all(
        ['tnl_not-a-real-key', set.adminToken, set.otherKey].map((key) => set.backend.verifyKey(key)),
      );
      const text = JSON.stringify(verdicts) + verdicts.map((verdict) => (verdict.ok ? '' : verdict.fault.stack)).join();
      for (const key of ['tnl_not-a-real-key', set.adminToken, set.otherKey]) expect(text).not.toContain(key);
    });

    it('notifies listeners of a revocation until they unsubscribe', async (context) => {
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

    it('lets the operator and an account open tunnels', async () => {
      const { keyId } = await keyOf(set.accountKeys[0]);
      expect(await set.backend.admitTunnel(askedTunnel('tun_1', set.accountId, { keyId }))).toBeNull();
      const asked = askedTunnel('tun_2', '', { owner: { kind: 'operator' }, keyId: 'admin' });
      expect(await set.backend.admitTunnel(asked)).toBeNull();
      set.backend.admissionEnded('tun_1');
      set.backend.admissionEnded('tun_2');
      set.backend.admissionEnded('tun_never-asked-for');
      set.backend.streamEnded();
      set.backend.ready();
    });

    const keyOf = async (token: string) => {
      const verdict = await set.backend.verifyKey(token);
      if (!verdict.ok) throw verdict.fault;
      return verdict;
    };

    describe('with a platform', () => {
      let other: OtherSide;
      let keyId: string;

      beforeEach(async (context) => {
        if (set.other === undefined) return context.skip('there is nobody');
        other = set.other;
        keyId = (await keyOf(set.accountKeys[0])).keyId;
      });

      const ask = (tunnelId: string) => set.backend.admitTunnel(askedTunnel(tunnelId, set.accountId, { keyId }));

      it('the platform learns of each tunnel, its traffic and its end', async () => {
        const counters = new TunnelCounters();
        expect(await ask('tun_1')).toBeNull();
        set.backend.tunnelOpened(openedTunnel('tun_1', set.accountId, { keyId, counters }));
        set.backend.admissionEnded('tun_1');
        await expect.poll(() => other.tunnel('tun_1')).toMatchObject({ isOpen: true, label: 'label-tun_1' });
        for (let n = 0; n < 3; n += 1) counters.addRequest();
        counters.addBytes(5000);
        set.backend.tunnelClosed(closedTunnel('tun_1', set.accountId));
        await expect.poll(() => other.tunnel('tun_1')).toMatchObject({ isOpen: false, requests: 3, bytes: 5000 });
      });

      it('the platform gets the traffic of connections that outlive their tunnel', async () => {
        const counters = countersOf(1, 10, 1);
        await ask('tun_1');
        set.backend.tunnelOpened(openedTunnel('tun_1', set.accountId, { keyId, counters }));
        set.backend.tunnelClosed(closedTunnel('tun_1', set.accountId));
        counters.addBytes(690);
        counters.openConnections = 0;
        set.backend.streamEnded();
        await set.backend.stop();
        expect(other.tunnel('tun_1')).toMatchObject({ isOpen: false, requests: 1, bytes: 700 });
      });

      it('the platform gets nothing about the operator’s tunnels', async () => {
        const owner = { kind: 'operator' } as const;
        const counters = countersOf(9, 9);
        await set.backend.admitTunnel(askedTunnel('tun_op', '', { owner }));
        set.backend.tunnelOpened(openedTunnel('tun_op', '', { owner, counters }));
        set.backend.tunnelClosed({ ...closedTunnel('tun_op', ''), owner });
        await set.backend.stop();
        expect(other.tunnel('tun_op')).toBeUndefined();
      });

      it('a tunnel that found no endpoint does not count toward the limit', async () => {
        await other.setLimit(set.accountId, 1);
        expect(await ask('tun_1')).toBeNull();
        set.backend.admissionEnded('tun_1');
        expect(await ask('tun_2')).toBeNull();
        expect(other.tunnel('tun_1')).toBeUndefined();
      });

      it('a tunnel over the limit is refused in the platform’s words, and a closed tunnel frees its place', async () => {
        await other.setLimit(set.accountId, 1);
        expect(await ask('tun_1')).toBeNull();
        set.backend.tunnelOpened(openedTunnel('tun_1', set.accountId, { keyId }));
        const refusal = await ask('tun_2');
        expect(refusal).toMatchObject({ code: 'TUNNEL_PLAN_LIMIT', message: 'tunnel limit of 1 reached' });
        set.backend.tunnelClosed(closedTunnel('tun_1', set.accountId));
        expect(await ask('tun_3')).toBeNull();
      });

      it('closing an account revokes its sessions with the platform’s code and message', async () => {
        const heard: Revocation[] = [];
        set.backend.onRevoked((revocation) => heard.push(revocation));
        await other.closeAccount(set.accountId, 'ACCOUNT_SUSPENDED', 'the account is suspended for a reason');
        await expect.poll(() => heard).toMatchObject([{ accountId: set.accountId }]);
        expect(heard[0]?.fault).toMatchObject({
          code: 'ACCOUNT_SUSPENDED',
          message: 'the account is suspended for a reason',
        });
      });

      it('an account at its spend cap loses its sessions and opens no tunnel until the cap is raised', async () => {
        const heard: Revocation[] = [];
        set.backend.onRevoked((revocation) => heard.push(revocation));
        expect(await ask('tun_1')).toBeNull();
        await other.setCap(set.accountId, '$5.00');
        const fault = { code: 'SPEND_CAP_REACHED', message: 'spend cap of $5.00 reached', retryable: false };
        await expect.poll(() => heard, { timeout: 15_000 }).toMatchObject([{ accountId: set.accountId, fault }]);
        expect((await set.backend.verifyKey(set.accountKeys[0])).ok).toBe(true);
        expect(await ask('tun_2')).toMatchObject(fault);
        await other.setCap(set.accountId, null);
        expect((await set.backend.verifyKey(set.accountKeys[0])).ok).toBe(true);
        expect(await ask('tun_3')).toBeNull();
      });

      it('during an outage, an account at its spend cap opens no tunnel, and other accounts do', async () => {
        const heard: Revocation[] = [];
        set.backend.onRevoked((revocation) => heard.push(revocation));
        await other.setCap(set.accountId, '$5.00');
        await expect.poll(() => heard, { timeout: 15_000 }).toHaveLength(1);
        // The account’s key is valid, and the edge has just checked the key again.
        expect((await set.backend.verifyKey(set.accountKeys[0])).ok).toBe(true);
        const { keyId: otherKeyId } = await keyOf(set.otherKey);
        await other.goAway();
        const away = { code: 'AUTH_BACKEND_AWAY', retryable: true };
        expect(await ask('tun_1')).toMatchObject(away);
        expect(
          await set.backend.admitTunnel(askedTunnel('tun_2', set.otherAccountId, { keyId: otherKeyId })),
        ).toBeNull();
        await other.comeBack();
        await expect.poll(() => ask('tun_3'), { timeout: 15_000 }).toMatchObject({ code: 'SPEND_CAP_REACHED' });
        await other.setCap(set.accountId, null);
        expect(await ask('tun_4')).toBeNull();
        await other.goAway();
        expect(await ask('tun_5')).toBeNull();
      });

      it('during an outage, known keys work and limits apply; usage is delivered afterwards', async () => {
        await other.setLimit(set.accountId, 2);
        await expect.poll(async () => (await keyOf(set.accountKeys[0])).ok).toBe(true);
        expect(await ask('tun_1')).toBeNull();
        set.backend.tunnelOpened(openedTunnel('tun_1', set.accountId, { keyId }));
        await expect.poll(() => other.tunnel('tun_1')?.label).toBe('label-tun_1');
        await other.goAway();
        expect((await set.backend.verifyKey(set.accountKeys[0])).ok).toBe(true);
        expect(await set.backend.verifyKey(set.accountKeys[1])).toMatchObject({
          ok: false,
          fault: { code: 'AUTH_BACKEND_AWAY', retryable: true },
        });
        expect((await set.backend.verifyKey(set.adminToken)).ok).toBe(true);
        expect(await ask('tun_2')).toBeNull();
        const counters = new TunnelCounters();
        set.backend.tunnelOpened(openedTunnel('tun_2', set.accountId, { keyId, counters }));
        expect(await ask('tun_3')).toMatchObject({ code: 'TUNNEL_PLAN_LIMIT' });
        counters.addBytes(77);
        set.backend.tunnelClosed(closedTunnel('tun_2', set.accountId));
        await other.comeBack();
        await expect.poll(() => other.tunnel('tun_2'), { timeout: 15_000 }).toMatchObject({ isOpen: false, bytes: 77 });
        await expect.poll(async () => (await set.backend.verifyKey(set.accountKeys[1])).ok).toBe(true);
      });
    });
  });
};

const swapCase = (text: string): string =>
  text.replace(/[a-zA-Z]/, (letter) => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()));
