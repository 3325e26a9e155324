// Random lives of a certificate with an authority that refuses, rate-limits, hangs and issues.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  type CertificateEffect,
  type CertificateEvent,
  type CertificateLife,
  certificateDueAt,
  certificateState,
  NEW_CERTIFICATE,
  type OrderFailure,
  transitionCertificate,
} from './certificate-life.rules.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

interface Answer {
  readonly order: OrderFailure | 'issued' | 'held-back';
  readonly begins: boolean;
  readonly retryAfterMs: number | null;
  readonly lifeDays: number;
  readonly window: 'none' | 'past' | 'late' | 'ordinary' | 'backwards';
  readonly chance: number;
  readonly waitMs: number;
  readonly byHand: boolean;
}

const answer: fc.Arbitrary<Answer> = fc.record({
  order: fc.constantFrom(
    'issued',
    'issued',
    'refused',
    'gone',
    'away',
    'rate-limited',
    'already-replaced',
    'held-back',
  ),
  begins: fc.boolean(),
  retryAfterMs: fc.option(fc.nat({ max: 12 * DAY })),
  lifeDays: fc.constantFrom(6, 45, 64, 90),
  window: fc.constantFrom('none', 'past', 'late', 'ordinary', 'backwards'),
  chance: fc.double({ min: 0, max: 0.999, noNaN: true }),
  waitMs: fc.oneof(fc.constant(0), fc.nat({ max: HOUR }), fc.nat({ max: 20 * DAY })),
  byHand: fc.constantFrom(false, false, false, true),
});

const windowOf = (kind: Answer['window'], now: number, life: CertificateLife) => {
  const end = life.issued?.notAfter ?? now;
  if (kind === 'none') return null;
  if (kind === 'past') return { start: now - 2 * DAY, end: now - DAY };
  if (kind === 'late') return { start: end + DAY, end: end + 2 * DAY };
  if (kind === 'backwards') return { start: end, end: now };
  return { start: now + DAY, end: now + 2 * DAY };
};

it('every order comes at its time, none is forgotten, and an order in progress is resumed', () => {
  fc.assert(
    fc.property(fc.array(answer, { minLength: 1, maxLength: 60 }), (answers) => {
      let life = NEW_CERTIFICATE;
      let now = Date.UTC(2030, 0, 1);
      let earliestTry = 0;
      const feed = (event: CertificateEvent, chance: number): readonly CertificateEffect[] => {
        const [next, effects] = transitionCertificate(life, event, now, chance);
        life = JSON.parse(JSON.stringify(next)) as CertificateLife;
        return effects;
      };
      for (const { order, begins, retryAfterMs, lifeDays, window, chance, waitMs, byHand } of answers) {
        now += waitMs;
        if (byHand) {
          feed({ kind: 'renewal-asked' }, chance);
          earliestTry = now;
        }
        const before = life;
        const effects = feed({ kind: 'time-passed' }, chance);
        // Work is done exactly at the due time, so that a scheduler that sleeps until then misses nothing and never spins.
        expect(effects.length > 0).toBe(now >= certificateDueAt(before));
        for (const effect of effects) {
          if (effect.kind === 'warn') {
            expect(certificateState(before, now)).toBe('failing');
            if (before.warnedAt !== null) expect(now - before.warnedAt).toBeGreaterThanOrEqual(DAY);
          }
          if (effect.kind === 'ask-renewal-info') {
            feed({ kind: 'renewal-info', window: windowOf(window, now, life), retryAfterMs }, chance);
            expect(life.infoAt).toBeGreaterThanOrEqual(now + MINUTE);
            expect(life.infoAt).toBeLessThanOrEqual(now + DAY);
          }
          if (effect.kind !== 'begin-order' && effect.kind !== 'resume-order') continue;
          expect(now).toBeGreaterThanOrEqual(earliestTry);
          expect(['ordering', 'renewing', 'failing']).toContain(certificateState(life, now));
          if (effect.kind === 'resume-order') expect(effect.url).toBe(before.order?.url);
          else expect(before.order?.url == null || now >= before.order.until).toBe(true);
          if (effect.kind === 'begin-order' && effect.replaces) expect(before.issued).not.toBeNull();
          if (effect.kind === 'begin-order' && begins)
            feed({ kind: 'order-begun', url: `https://ca/${now}`, expiresAt: null }, chance);
          const known = life.order?.url ?? null;
          if (order === 'issued') {
            feed({ kind: 'issued', notBefore: now - HOUR, notAfter: now + lifeDays * DAY }, chance);
            earliestTry = now;
            expect([certificateState(life, now), life.failures, life.lastError]).toEqual(['valid', 0, null]);
          } else if (order === 'held-back') {
            feed({ kind: 'held-back', until: now + HOUR }, chance);
            earliestTry = now + HOUR;
          } else {
            const failedBefore = life.failures;
            feed({ kind: 'order-failed', why: order, reason: 'why', retryAfterMs }, chance);
            const keeps = order === 'away' || order === 'rate-limited';
            expect(life.order?.url ?? null).toBe(keeps ? known : null);
            // The first alreadyReplaced answer is no failure; a second answer in a row is a failure.
            const isFree = life.failures === failedBefore;
            if (isFree) expect([order, before.wasReplaced]).toEqual(['already-replaced', false]);
            earliestTry = isFree ? now : now + Math.max(MINUTE, Math.min(retryAfterMs ?? 0, 8 * DAY));
          }
          // A failure never loses an issued certificate.
          if (order !== 'issued') expect(life.issued).toEqual(before.issued);
        }
        // No certificate waits forever, and no order that could be placed earlier waits for the end of the certificate.
        expect(certificateDueAt(life) - now).toBeLessThanOrEqual(90 * DAY);
        if (life.issued !== null && life.order === null && life.failures === 0) {
          expect(certificateDueAt(life)).toBeLessThanOrEqual(Math.max(life.issued.notAfter - 1, earliestTry));
        }
      }
    }),
    { numRuns: 500 },
  );
});
