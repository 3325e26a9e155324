import fc from 'fast-check';
import { expect, it } from 'vitest';
import { takeMail } from './mail-quota.rules.ts';

const RULES = { perHour: 3, perDay: 10 };
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const NOON = Date.UTC(2030, 5, 15, 12);

/** Returns the times at which a mail is sent. */
const sentOf = (times: readonly number[]): number[] => {
  let counted: number[] = [];
  const sent: number[] = [];
  for (const at of times) {
    const taken = takeMail(counted, at, RULES);
    if (taken === null) continue;
    expect(taken.length).toBeLessThanOrEqual(RULES.perDay);
    counted = taken;
    sent.push(at);
  }
  return sent;
};

it('the mail quota allows three mails an hour and ten a day', () => {
  const everyTenMinutes = Array.from({ length: 6 * 24 }, (_, index) => NOON + index * 10 * MINUTE_MS);
  const sent = sentOf(everyTenMinutes);
  expect(sent.map((at) => (at - NOON) / MINUTE_MS)).toEqual([0, 10, 20, 60, 70, 80, 120, 130, 140, 180]);
  expect(sentOf([...everyTenMinutes, NOON + 24 * HOUR_MS])).toHaveLength(11);
});

it("for any request times, no hour or day exceeds the quota, and a mail after a day's pause is sent", () => {
  const gaps = fc.array(fc.nat(3 * HOUR_MS), { maxLength: 60 });
  fc.assert(
    fc.property(gaps, (between) => {
      let at = NOON;
      const times = between.map((gap) => (at += gap));
      const sent = sentOf(times);
      const within = (from: number, ms: number) => sent.filter((time) => time >= from && time < from + ms).length;
      for (const time of sent) {
        expect(within(time, HOUR_MS)).toBeLessThanOrEqual(RULES.perHour);
        expect(within(time, 24 * HOUR_MS)).toBeLessThanOrEqual(RULES.perDay);
      }
      const last = times.at(-1) ?? NOON;
      expect(sentOf([...times, last + 24 * HOUR_MS]).at(-1)).toBe(last + 24 * HOUR_MS);
    }),
  );
});

it('a mail dated in the future counts as sent now', () => {
  expect(takeMail([NOON + 5 * HOUR_MS], NOON, RULES)).toEqual([NOON, NOON]);
});
