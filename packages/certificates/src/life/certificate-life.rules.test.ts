import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  type BudgetEntry,
  type CertificateEvent,
  type CertificateLife,
  certificateDueAt,
  certificateState,
  NEW_CERTIFICATE,
  takeFromBudget,
  transitionCertificate,
} from './certificate-life.rules.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const T = Date.UTC(2030, 0, 1);

const after = (life: CertificateLife, now: number, ...events: CertificateEvent[]): CertificateLife =>
  events.reduce((state, event) => transitionCertificate(state, event, now, 0)[0], life);

const effects = (life: CertificateLife, now: number) => transitionCertificate(life, { kind: 'time-passed' }, now, 0)[1];

const failed = (why: 'refused' | 'away' | 'rate-limited' | 'already-replaced', retryAfterMs: number | null = null) =>
  ({ kind: 'order-failed', why, reason: 'the reason', retryAfterMs }) as const;

/** Returns an issued certificate without a renewal information request for the next 100 days. */
const issuedFor = (days: number): CertificateLife => ({
  ...after(NEW_CERTIFICATE, T, { kind: 'issued', notBefore: T, notAfter: T + days * DAY }),
  infoAt: T + 100 * DAY,
});

it('renewal information is requested right after a certificate is issued', () => {
  const life = after(NEW_CERTIFICATE, T, { kind: 'issued', notBefore: T, notAfter: T + 90 * DAY });
  expect(effects(life, T)).toEqual([{ kind: 'ask-renewal-info' }]);
});

it('after a start, renewal information is requested, but never later than planned', () => {
  const life = issuedFor(90);
  expect(effects(after(life, T, { kind: 'info-wanted', at: T }), T)).toEqual([{ kind: 'ask-renewal-info' }]);
  expect(after(life, T, { kind: 'info-wanted', at: T + 200 * DAY }).infoAt).toBe(T + 100 * DAY);
  expect(after(NEW_CERTIFICATE, T, { kind: 'info-wanted', at: T })).toEqual(NEW_CERTIFICATE);
});

it('failed orders are retried after 1, 5 and 30 minutes, 2 and 12 hours, then daily', () => {
  let life = NEW_CERTIFICATE;
  let now = T;
  const waits = Array.from({ length: 7 }, () => {
    life = after(life, now, { kind: 'time-passed' }, failed('refused'));
    const wait = certificateDueAt(life) - now;
    expect([effects(life, now + wait - 1), certificateState(life, now)]).toEqual([[], 'failing']);
    now += wait;
    expect(effects(life, now)).toEqual([{ kind: 'begin-order', replaces: false }]);
    return wait / MINUTE;
  });
  expect(waits).toEqual([1, 5, 30, 120, 720, 1440, 1440]);
  expect([life.refusals, life.lastError]).toEqual([7, 'the reason']);
});

it('a rate limit is waited out for as long as the authority says', () => {
  const life = after(NEW_CERTIFICATE, T, { kind: 'time-passed' }, failed('rate-limited', 3 * HOUR));
  expect(certificateDueAt(life)).toBe(T + 3 * HOUR);
});

it("a renewal comes at two thirds of the lifetime, at half of a short lifetime, or inside the authority's window", () => {
  expect(issuedFor(90).renewAt).toBe(T + 60 * DAY);
  expect(issuedFor(6).renewAt).toBe(T + 3 * DAY);
  const window = { start: T + 10 * DAY, end: T + 20 * DAY };
  const [told] = transitionCertificate(issuedFor(90), { kind: 'renewal-info', window, retryAfterMs: null }, T, 0.5);
  expect(told.renewAt).toBe(T + 15 * DAY);
  // Receiving the same window again does not draw a new renewal time.
  const [again] = transitionCertificate(told, { kind: 'renewal-info', window, retryAfterMs: null }, T + DAY, 0.1);
  expect(again.renewAt).toBe(T + 15 * DAY);
  expect(effects(again, T + 15 * DAY)).toEqual([{ kind: 'begin-order', replaces: true }]);
});

it('a renewal window in the past renews at once, and a window after the end does not prevent renewal', () => {
  const info = (start: number): CertificateEvent => ({
    kind: 'renewal-info',
    window: { start, end: start + DAY },
    retryAfterMs: null,
  });
  expect(effects(after(issuedFor(90), T, info(T - 5 * DAY)), T)).toEqual([{ kind: 'begin-order', replaces: true }]);
  const late = after(issuedFor(90), T, info(T + 100 * DAY));
  expect(effects({ ...late, infoAt: T + 99 * DAY }, T + 81 * DAY)).toEqual([{ kind: 'begin-order', replaces: true }]);
});

it('in its last tenth a certificate is failing, retried hourly and warned about daily', () => {
  let life = after(issuedFor(90), T + 60 * DAY, { kind: 'time-passed' });
  for (let count = 0; count < 6; count += 1) life = after(life, T + 60 * DAY, failed('away'));
  expect(certificateState(life, T + 62 * DAY)).toBe('renewing');
  const now = T + 82 * DAY;
  expect(effects(life, now)[0]).toEqual({ kind: 'warn', endsAt: T + 90 * DAY });
  life = after(life, now, { kind: 'time-passed' }, failed('away'));
  expect([certificateState(life, now), certificateDueAt(life)]).toEqual(['failing', now + HOUR]);
  expect(effects(life, now + HOUR).map(({ kind }) => kind)).toEqual(['begin-order']);
  expect(effects(life, now + DAY).map(({ kind }) => kind)).toEqual(['warn', 'begin-order']);
});

it('an order that was begun is resumed for a day, then replaced by a new order', () => {
  const begun = after(
    NEW_CERTIFICATE,
    T,
    { kind: 'time-passed' },
    { kind: 'order-begun', url: 'https://ca/order/1', expiresAt: null },
  );
  // The order is resumed after a crash as well as after a lost answer.
  expect(effects(begun, T + 1)).toEqual([{ kind: 'resume-order', url: 'https://ca/order/1' }]);
  const away = after(begun, T, failed('away'));
  expect(effects(away, T + HOUR)).toEqual([{ kind: 'resume-order', url: 'https://ca/order/1' }]);
  expect(effects(away, T + DAY)).toEqual([{ kind: 'begin-order', replaces: false }]);
});

it('an already replaced certificate is ordered once more at once, without `replaces`', () => {
  const due = after(issuedFor(90), T + 60 * DAY, { kind: 'time-passed' }, failed('already-replaced'));
  expect(effects(due, T + 60 * DAY)).toEqual([{ kind: 'begin-order', replaces: false }]);
  const again = after(due, T + 60 * DAY, { kind: 'time-passed' }, failed('already-replaced'));
  expect(effects(again, T + 60 * DAY)).toEqual([]);
});

it('a renewal requested by hand starts at once', () => {
  const life = after(issuedFor(90), T, { kind: 'renewal-asked' });
  expect(effects(life, T)).toEqual([{ kind: 'begin-order', replaces: true }]);
});

it('the order budget holds in every window, and returns the time when there is room', () => {
  const rules = { max: 3, windowMs: HOUR };
  let taken: readonly BudgetEntry[] = [T];
  for (const at of [T + 1, T + 2]) {
    const answer = takeFromBudget(taken, rules, at, 'a');
    if (answer.kind === 'taken') taken = answer.entries;
  }
  expect(takeFromBudget(taken, rules, T + 3, 'a')).toEqual({ kind: 'empty', until: T + HOUR, isWhole: true });
  expect(takeFromBudget(taken, rules, T + HOUR, 'b')).toEqual({
    kind: 'taken',
    entries: [
      { at: T + 1, account: 'a' },
      { at: T + 2, account: 'a' },
      { at: T + HOUR, account: 'b' },
    ],
  });
  expect(takeFromBudget([T + DAY, T + DAY, T + DAY], rules, T, 'a').kind).toBe('taken');
});

it('at any time an account uses at most its part of the budget, all accounts at most the whole, and the operator is never refused', () => {
  const step = fc.record({ account: fc.constantFrom('a', 'b', 'c', 'd', 'e', null), ms: fc.nat({ max: HOUR / 4 }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150, size: 'max' }), (steps) => {
      const rules = { max: 8, windowMs: HOUR, perAccount: 2 };
      let entries: readonly BudgetEntry[] = [];
      let made: { account: string; at: number }[] = [];
      let now = T;
      for (const { account, ms } of steps) {
        now += ms;
        made = made.filter(({ at }) => at > now - HOUR);
        const own = made.filter((one) => one.account === account).length;
        const answer = takeFromBudget(entries, rules, now, account);
        const isFree = account === null || (own < rules.perAccount && made.length < rules.max);
        expect(answer.kind).toBe(isFree ? 'taken' : 'empty');
        if (answer.kind === 'empty') {
          // The returned time is exact: there is room at that time, and no room 1 ms earlier.
          expect(takeFromBudget(entries, rules, answer.until - 1, account).kind).toBe('empty');
          if (answer.isWhole) expect(made).toHaveLength(rules.max);
          continue;
        }
        entries = answer.entries;
        if (account !== null) made.push({ account, at: now });
      }
    }),
  );
});
