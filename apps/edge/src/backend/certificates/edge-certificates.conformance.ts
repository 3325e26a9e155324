// Conformance suite for automatically issued certificates of an edge. Two implementations run the suite: certificates from a scripted
// platform, and a standalone edge that orders certificates from a test authority with real validation.
import { X509Certificate } from 'node:crypto';
import { eventually } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AskedChallenge, EdgeCertificates } from './edge-certificates.ts';
import { RecordingListener } from './recording-listener.fixture.ts';

/** An edge under test and the issuer of its certificates. */
export interface CertificatesStage {
  /** The operator’s domain. A certificate is wanted from the start. */
  readonly domain: string;
  /** An account’s custom domain. A certificate is wanted from the start. */
  readonly own: string;
  /** Creates a run of the edge, with the files of the previous run. The edge reports nothing before start(). */
  open(): { readonly edge: EdgeCertificates; start(): Promise<void>; stop(): Promise<void> };
  /** Lets orders complete. Until this call, orders wait for their challenges. */
  issue(): void;
  /** Renews the certificate of the custom domain. The old certificate stays in use until the new certificate is issued. */
  renew(edge: EdgeCertificates): Promise<void>;
  /** Makes the issuer of certificates unreachable: the platform or the authority. */
  away(): void;
  /** Removes the custom domain from its account, at once or from the next run on. */
  forget(): void;
  /** The challenge for the custom domain in the current order, as the validator looks it up. Returns null if no validation is in progress. */
  challenge(): { readonly key: AskedChallenge; readonly token: string } | null;
  close(): Promise<void>;
}

const soon = { timeoutMs: 20_000, intervalMs: 20 };

export const conformsToEdgeCertificates = (title: string, openStage: () => Promise<CertificatesStage>): void => {
  describe(title, () => {
    let stage: CertificatesStage;
    let listener: RecordingListener;
    let stops: (() => Promise<void>)[];

    beforeEach(async () => {
      stage = await openStage();
      stops = [];
    });

    afterEach(async () => {
      for (const stop of stops) await stop();
      await stage.close();
    });

    const run = async (): Promise<{ edge: EdgeCertificates; stop: () => Promise<void> }> => {
      const { edge, start, stop } = stage.open();
      listener = new RecordingListener();
      edge.follow(listener);
      stops.push(stop);
      await start();
      return { edge, stop };
    };

    const names = (): string[] => [stage.domain, stage.own].sort();

    const idOf = async (edge: EdgeCertificates, name: string): Promise<string> => {
      const known = (await edge.list()).find((one) => one.names.includes(name));
      if (known === undefined) throw new Error(`nothing is known of ${name}`);
      return known.id;
    };

    it('are reported with their names and a matching chain, and listed without a private key', async () => {
      stage.issue();
      const { edge } = await run();
      await eventually(() => expect(listener.names).toEqual(names()), soon);
      for (const name of names()) {
        const { cert } = listener.shown.get(await idOf(edge, name)) ?? { cert: '' };
        expect(new X509Certificate(cert).checkHost(name)).toBe(name);
      }
      await eventually(async () => {
        const list = await edge.list();
        expect(list.map(({ state }) => state)).toEqual(['valid', 'valid']);
        for (const one of list) {
          expect(one.issuer).not.toBeNull();
          expect(one.notAfter).toBeGreaterThan(one.notBefore ?? Number.POSITIVE_INFINITY);
          expect(one.isOperators).toBe(one.names[0] === stage.domain);
        }
        expect(JSON.stringify(list)).not.toContain('PRIVATE KEY');
      }, soon);
    });

    it('are wanted for exactly their names, before and after they are issued', async () => {
      const { edge } = await run();
      await eventually(() => expect(names().map((name) => edge.isWanted(name))).toEqual([true, true]), soon);
      stage.issue();
      await eventually(() => expect(listener.names).toEqual(names()), soon);
      const others = ['', 'localhost', `a.${stage.own}`, `*.${stage.own}`, `${stage.own}.`, stage.own.toUpperCase()];
      for (const other of others) expect(edge.isWanted(other)).toBe(false);
      expect(names().map((name) => edge.isWanted(name))).toEqual([true, true]);
    });

    it('have their challenge found while an order waits for it; other challenges are not found', async () => {
      const { edge } = await run();
      const waited = await eventually(() => {
        const challenge = stage.challenge();
        if (challenge === null) throw new Error('not yet');
        return challenge;
      }, soon);
      const { key, token } = waited;
      await eventually(
        async () => expect(await edge.findChallenge(key)).toMatchObject({ name: stage.own, token }),
        soon,
      );
      expect(await edge.findChallenge({ tlsName: `other.${stage.domain}` })).toBeNull();
      expect(await edge.findChallenge({ token: 'nobodys', host: stage.own })).toBeNull();
    });

    it('replace the previous certificate under the same id', async () => {
      stage.issue();
      const { edge } = await run();
      await eventually(() => expect(listener.names).toEqual(names()), soon);
      const id = await idOf(edge, stage.own);
      const before = listener.shown.get(id)?.cert;
      await eventually(() => stage.renew(edge), soon);
      await eventually(() => expect(listener.shown.get(id)?.cert).not.toBe(before), soon);
      expect(listener.names).toEqual(names());
      expect(await idOf(edge, stage.own)).toBe(id);
    });

    it('are available right after the next start, even while the platform or authority is unreachable', async () => {
      stage.issue();
      const { stop } = await run();
      await eventually(() => expect(listener.names).toEqual(names()), soon);
      await stop();
      stage.away();
      await run();
      expect(listener.names).toEqual(names());
    });

    it('are removed when no longer wanted, without affecting other certificates', async () => {
      stage.issue();
      const { stop } = await run();
      await eventually(() => expect(listener.names).toEqual(names()), soon);
      await stop();
      stage.forget();
      const { edge } = await run();
      await eventually(() => expect(listener.names).toEqual([stage.domain]), soon);
      expect([edge.isWanted(stage.own), edge.isWanted(stage.domain)]).toEqual([false, true]);
      expect((await edge.list()).map((one) => one.names)).toEqual([[stage.domain]]);
    });

    it('are not reported after stop(), even if stop() interrupts an order', async () => {
      const { edge, stop } = await run();
      await eventually(() => expect(edge.isWanted(stage.own)).toBe(true), soon);
      await stop();
      stage.issue();
      const told = listener.names;
      expect(await edge.findChallenge({ tlsName: 'whoever.example' })).toBeNull();
      await new Promise((resolve) => setImmediate(resolve));
      expect(listener.names).toEqual(told);
    });
  });
};
