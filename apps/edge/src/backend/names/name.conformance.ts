// Conformance suite for the ownership of names, for every backend. Used by tests only, together with backend.conformance.ts.
import type { Owner } from '@tunnel/rules/tunnels';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BackendUnderTest } from '../backend.conformance.ts';
import { askedTunnel, closedTunnel, openedTunnel } from '../platform-backend.fixture.ts';
import type { RequestedEndpoint } from './admission-request.ts';

export const nameConformance = (name: string, create: () => Promise<BackendUnderTest>): void => {
  describe(`name ownership, backend ${name}`, () => {
    let set: BackendUnderTest;
    let tunnels = 0;
    const keyIds = new Map<string, string>();

    beforeEach(async () => {
      tunnels = 0;
      set = await create();
      await set.backend.start();
      keyIds.set(set.accountId, (await keyOf(set.accountKeys[0])).keyId);
      keyIds.set(set.otherAccountId, (await keyOf(set.otherKey)).keyId);
    });

    type Wanted = Partial<RequestedEndpoint> & { readonly label: string | null };

    const ownerOf = (who: string | null): Owner =>
      who === null ? { kind: 'operator' } : { kind: 'account', accountId: who };

    /**
     * Asks to open a tunnel on a custom domain; a null account means the operator. Returns the refusal, or null if the tunnel is
     * admitted.
     */
    const domainFor = async (who: string | null, domain: string): Promise<string | null> => {
      tunnels += 1;
      const tunnelId = `tun_domain-${tunnels}`;
      const keyId = who === null ? 'admin' : (keyIds.get(who) as string);
      const refusal = await set.backend.admitTunnel(askedTunnel(tunnelId, '', { owner: ownerOf(who), keyId, domain }));
      set.backend.admissionEnded(tunnelId);
      return refusal === null ? null : `${refusal.code}: ${refusal.message}`;
    };

    const unverified = (domain: string): string =>
      `TUNNEL_DOMAIN_UNVERIFIED: domain '${domain}' is not verified for this account`;

    /** Asks to open a tunnel with a name. A null account means the operator. */
    const ask = async (who: string | null, wanted: Wanted) => {
      tunnels += 1;
      const tunnelId = `tun_name-${tunnels}`;
      const endpoint: RequestedEndpoint = {
        kind: 'subdomain',
        choice: 'asked',
        groupKeyHash: null,
        joinsGroup: false,
        ...wanted,
      };
      const owner = ownerOf(who);
      const keyId = who === null ? 'admin' : (keyIds.get(who) as string);
      const refusal = await set.backend.admitTunnel(askedTunnel(tunnelId, '', { owner, keyId, endpoint }));
      const open = (): void => {
        set.backend.tunnelOpened(openedTunnel(tunnelId, '', { owner, keyId }));
        set.backend.admissionEnded(tunnelId);
      };
      const close = (): void => set.backend.tunnelClosed({ ...closedTunnel(tunnelId, ''), owner });
      const giveUp = (): void => set.backend.admissionEnded(tunnelId);
      return { code: refusal?.code ?? null, message: refusal?.message ?? null, open, close, giveUp };
    };

    const codeFor = async (who: string | null, wanted: Wanted): Promise<string | null> => {
      const { code, giveUp } = await ask(who, wanted);
      giveUp();
      return code;
    };

    it('an account owns a name by first use, even after the tunnel has closed', async () => {
      const first = await ask(set.accountId, { label: 'shop' });
      expect(first.code).toBeNull();
      first.open();
      const other = await ask(set.otherAccountId, { label: 'shop' });
      expect([other.code, other.message]).toEqual(['TUNNEL_SUBDOMAIN_IN_USE', "subdomain 'shop' is already in use"]);
      first.close();
      expect(await codeFor(set.otherAccountId, { label: 'shop' })).toBe('TUNNEL_SUBDOMAIN_IN_USE');
      expect(await codeFor(set.otherAccountId, { label: 'shop', choice: 'preferred' })).toBe('TUNNEL_SUBDOMAIN_IN_USE');
      expect(await codeFor(set.accountId, { label: 'shop' })).toBeNull();
      expect(await codeFor(set.accountId, { label: 'shop', groupKeyHash: 'c'.repeat(64) })).toBeNull();
    });

    it('a p2p name is owned by first use, independently of the subdomain with the same text', async () => {
      const wanted = { kind: 'p2p', label: 'office-db' } as const;
      const first = await ask(set.accountId, wanted);
      expect(first.code).toBeNull();
      first.open();
      first.close();
      const other = await ask(set.otherAccountId, wanted);
      expect([other.code, other.message]).toEqual(['TUNNEL_P2P_NAME_IN_USE', "p2p name 'office-db' is already in use"]);
      expect(await codeFor(null, wanted)).toBe('TUNNEL_P2P_NAME_IN_USE');
      expect(await codeFor(set.accountId, wanted)).toBeNull();
      expect(await codeFor(set.otherAccountId, { label: 'office-db' })).toBeNull();
    });

    it('using a nested name claims the whole name: a.shop claims shop, *.shop and b.shop', async () => {
      const first = await ask(set.accountId, { label: 'a.shop' });
      first.open();
      for (const label of ['shop', '*.shop', 'b.shop']) {
        expect(await codeFor(set.otherAccountId, { label })).toBe('TUNNEL_SUBDOMAIN_IN_USE');
        expect(await codeFor(set.accountId, { label })).toBeNull();
      }
    });

    it('a tunnel that found no endpoint claims no name', async () => {
      const first = await ask(set.accountId, { label: 'tried' });
      first.giveUp();
      await expect.poll(() => codeFor(set.otherAccountId, { label: 'tried' })).toBeNull();
    });

    it('any account with the key of the last group can use the group’s name', async () => {
      const keyHash = 'a'.repeat(64);
      const first = await ask(set.accountId, { label: 'pool', groupKeyHash: keyHash });
      first.open();
      const second = await ask(set.otherAccountId, { label: 'pool', groupKeyHash: keyHash, joinsGroup: true });
      expect(second.code).toBeNull();
      second.open();
      first.close();
      second.close();
      // Both accounts can start the group again with the group key. Without the key, or with another key, only the first account can use
      // the name.
      expect(await codeFor(set.otherAccountId, { label: 'pool', groupKeyHash: keyHash })).toBeNull();
      const another = await ask(set.otherAccountId, { label: 'pool', groupKeyHash: 'b'.repeat(64) });
      expect([another.code, another.message]).toEqual(['GROUP_KEY_MISMATCH', 'group key does not match']);
      expect(await codeFor(set.otherAccountId, { label: 'pool' })).toBe('TUNNEL_SUBDOMAIN_IN_USE');
      expect(await codeFor(set.accountId, { label: 'pool' })).toBeNull();
    });

    it('the operator owns no name and takes no name or port from an account', async () => {
      const free = await ask(null, { label: 'news' });
      expect(free.code).toBeNull();
      free.open();
      free.close();
      const first = await ask(set.accountId, { label: 'news' });
      expect(first.code).toBeNull();
      first.open();
      expect(await codeFor(null, { label: 'news' })).toBe('TUNNEL_SUBDOMAIN_IN_USE');
      expect(await codeFor(null, { label: 'x.news' })).toBe('TUNNEL_SUBDOMAIN_IN_USE');
      first.close();
      expect(await codeFor(null, { label: 'news' })).toBe('TUNNEL_SUBDOMAIN_IN_USE');
      expect(await codeFor(null, { kind: 'tcp', label: '20042' })).toBe('TUNNEL_PORT_IN_USE');
    });

    it('reserved names and ports are known to the edge and refused to other accounts', async () => {
      const { reserved } = set.backend;
      const other: Owner = { kind: 'account', accountId: set.otherAccountId };
      const own: Owner = { kind: 'account', accountId: set.accountId };
      await expect.poll(() => reserved.isReserved('kept')).toBe(true);
      expect([reserved.isReserved('a.kept'), reserved.isReserved('shop')]).toEqual([false, false]);
      expect([reserved.countOf('subdomain'), reserved.countOf('tcp'), reserved.countOf('udp')]).toEqual([1, 1, 0]);
      expect(reserved.isOthersPort('tcp', 20_042, other, null)).toBe(true);
      expect(reserved.isOthersPort('tcp', 20_042, { kind: 'operator' }, null)).toBe(true);
      expect(reserved.isOthersPort('tcp', 20_042, own, null)).toBe(false);
      expect(reserved.isOthersPort('udp', 20_042, other, null)).toBe(false);
      const port = await ask(set.otherAccountId, { kind: 'tcp', label: '20042' });
      expect([port.code, port.message]).toEqual(['TUNNEL_PORT_IN_USE', 'port 20042 is already in use']);
      expect(await codeFor(set.otherAccountId, { label: 'kept' })).toBe('TUNNEL_SUBDOMAIN_IN_USE');
      for (const label of ['kept', '*.kept']) expect(await codeFor(set.accountId, { label })).toBeNull();
      expect(await codeFor(set.accountId, { kind: 'tcp', label: '20042' })).toBeNull();
      // A port claimed by use is free again once its tunnel has closed.
      const used = await ask(set.accountId, { kind: 'tcp', label: '20043' });
      used.open();
      used.close();
      expect(await codeFor(set.otherAccountId, { kind: 'tcp', label: '20043' })).toBeNull();
    });

    it('a verified domain serves only its account; the operator can use domains without an account', async () => {
      const { reserved } = set.backend;
      await expect.poll(() => reserved.accountOfDomain('*.example.org')).toBe(set.accountId);
      expect(reserved.accountOfDomain('shop.example.org')).toBe(set.accountId);
      expect(reserved.accountOfDomain('other.example.org')).toBeNull();
      for (const domain of ['shop.example.org', '*.example.org']) {
        expect(await domainFor(set.accountId, domain)).toBeNull();
        expect(await domainFor(set.otherAccountId, domain)).toBe(unverified(domain));
        expect(await domainFor(null, domain)).toBe(unverified(domain));
      }
      // Domains are compared exactly: a verified wildcard does not verify the hosts below it.
      for (const domain of ['other.example.org', 'example.org', '*.shop.example.org']) {
        expect(await domainFor(set.accountId, domain)).toBe(unverified(domain));
        expect(await domainFor(null, domain)).toBeNull();
      }
    });

    it('listeners are notified when a domain gets a new owner or is removed, but not when it lapses', async (context) => {
      const { other, backend } = set;
      if (other === undefined) return context.skip('there is nobody');
      await expect.poll(() => backend.reserved.accountOfDomain('shop.example.org')).toBe(set.accountId);
      const heard: (readonly [string, string | null])[] = [];
      const stop = backend.onDomainsChanged((keepers) => heard.push(...keepers));
      await other.setDomain('shop.example.org', set.otherAccountId);
      await expect.poll(() => heard).toEqual([['shop.example.org', set.otherAccountId]]);
      expect(await domainFor(set.accountId, 'shop.example.org')).toBe(unverified('shop.example.org'));
      expect(await domainFor(set.otherAccountId, 'shop.example.org')).toBeNull();
      await other.setDomain('shop.example.org', null, true);
      await other.setDomain('*.example.org', null);
      await expect.poll(() => heard.slice(1)).toEqual([['*.example.org', null]]);
      expect(backend.reserved.accountOfDomain('shop.example.org')).toBeNull();
      expect(await domainFor(set.otherAccountId, 'shop.example.org')).toBe(unverified('shop.example.org'));
      stop();
      await other.setDomain('new.example.org', set.accountId);
      expect(await domainFor(set.accountId, 'new.example.org')).toBeNull();
      expect(heard).toHaveLength(2);
    });

    it('during an outage, known domains are decided locally and accounts cannot use unknown domains yet', async (context) => {
      const { other, backend } = set;
      if (other === undefined) return context.skip('there is nobody');
      await expect.poll(() => backend.reserved.accountOfDomain('shop.example.org')).toBe(set.accountId);
      await other.goAway();
      expect(await domainFor(set.accountId, 'shop.example.org')).toBeNull();
      expect(await domainFor(set.otherAccountId, 'shop.example.org')).toBe(unverified('shop.example.org'));
      expect(await domainFor(set.accountId, 'new.example.org')).toBe('NAMES_AWAY: names cannot be checked right now');
      expect(await domainFor(null, 'new.example.org')).toBeNull();
      expect(await domainFor(null, 'shop.example.org')).toBe(unverified('shop.example.org'));
      await other.comeBack();
      await expect
        .poll(() => domainFor(set.accountId, 'new.example.org'), { timeout: 15_000 })
        .toBe(unverified('new.example.org'));
    });

    it('during an outage, known names are decided locally and other requested names are refused for now', async (context) => {
      const { other } = set;
      if (other === undefined) return context.skip('there is nobody');
      await expect.poll(() => set.backend.reserved.isReserved('kept')).toBe(true);
      const own = await ask(set.accountId, { label: 'shop' });
      own.open();
      own.close();
      await other.goAway();
      for (const label of ['shop', 'a.shop', '*.kept', 'kept']) {
        expect(await codeFor(set.accountId, { label })).toBeNull();
      }
      const unknown = await ask(set.accountId, { label: 'unknown' });
      expect([unknown.code, unknown.message]).toEqual(['NAMES_AWAY', 'names cannot be checked right now']);
      expect(await codeFor(set.otherAccountId, { label: 'shop' })).toBe('NAMES_AWAY');
      expect(await codeFor(set.otherAccountId, { label: 'kept' })).toBe('TUNNEL_SUBDOMAIN_IN_USE');
      expect(await codeFor(null, { label: 'shop' })).toBe('NAMES_AWAY');
      expect(await codeFor(set.otherAccountId, { label: 'shop', choice: 'preferred' })).toBe('TUNNEL_SUBDOMAIN_IN_USE');
      expect(await codeFor(set.otherAccountId, { label: 'brisk-otter-x7k2m9', choice: 'assigned' })).toBeNull();
      expect(await codeFor(set.otherAccountId, { kind: 'tcp', label: '20042' })).toBe('TUNNEL_PORT_IN_USE');
      expect(await codeFor(set.otherAccountId, { kind: 'tcp', label: '20043' })).toBeNull();
      const assigned = await ask(set.otherAccountId, { label: 'opened-meanwhile', choice: 'assigned' });
      assigned.open();
      await other.comeBack();
      // After the outage, the platform is told of tunnels opened meanwhile.
      await expect
        .poll(() => codeFor(set.accountId, { label: 'opened-meanwhile' }), { timeout: 15_000 })
        .toBe('TUNNEL_SUBDOMAIN_IN_USE');
      await expect.poll(() => codeFor(set.accountId, { label: 'unknown' }), { timeout: 15_000 }).toBeNull();
      await expect
        .poll(() => codeFor(set.otherAccountId, { label: 'shop' }), { timeout: 15_000 })
        .toBe('TUNNEL_SUBDOMAIN_IN_USE');
    });

    afterEach(async () => {
      await set.backend.stop();
      await set.cleanUp?.();
    });

    const keyOf = async (token: string) => {
      const verdict = await set.backend.verifyKey(token);
      if (!verdict.ok) throw verdict.fault;
      return verdict;
    };
  });
};
