// Rules for the cost of a month: months and days in UTC, the price of bytes, and the spend cap.

// Billing months run from midnight (UTC) on the first day to midnight on the first day of the next month, written YYYY-MM.

/** Returns the UTC month (YYYY-MM) of a time in milliseconds since the epoch. */
export const monthOf = (at: number): string => new Date(at).toISOString().slice(0, 7);

export const monthStart = (month: string): number => Date.parse(`${month}-01T00:00:00.000Z`);

/** Returns the end of a month: the first millisecond of the next month. */
export const monthEnd = (month: string): number => {
  const start = new Date(monthStart(month));
  return Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1);
};

/**
 * Returns the month in which a usage record is billed: the month of the usage, unless closed. A record that arrives later than `lateMs`
 * after the end of its month, or comes from a clock ahead by a month, is billed in the current month.
 */
export const billingMonth = (at: number, now: number, lateMs: number): string => {
  const month = monthOf(at);
  const present = monthOf(now);
  const isOpen = month <= present && now < monthEnd(month) + lateMs;
  return isOpen ? month : present;
};

// Usage days run from midnight to midnight in UTC, written YYYY-MM-DD.

const DAY_MS = 86_400_000;

/** Returns the UTC day (YYYY-MM-DD) of a time in milliseconds since the epoch. */
export const utcDay = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** Returns today and the days before today, `count` days in total, oldest first. */
export const lastUtcDays = (now: number, count: number): string[] =>
  Array.from({ length: count }, (_, index) => utcDay(now - (count - 1 - index) * DAY_MS));

// Conversion of bytes into money: whole cents, rounded down once, on the sum of a month. Parts of the sum are never rounded, so that
// their order and size do not matter.

/** Number of bytes in a gigabyte, the unit of prices. */
const BYTES_PER_GB = 1_000_000_000n;

/**
 * Returns the price of the bytes in cents. Computed in BigInt, because bytes times a price exceeds the exact range of a number long
 * before a petabyte.
 */
export const usageCents = (bytes: number, priceCentsPerGb: number): number =>
  Number((BigInt(bytes) * BigInt(priceCentsPerGb)) / BYTES_PER_GB);

/** Returns the amount due in cents. The monthly minimum is credited toward the usage. */
export const dueCents = (usage: number, minimumCents: number): number => Math.max(minimumCents, usage);

interface MonthSoFar {
  /** Metered bytes of the month. */
  readonly bytes: number;
  readonly priceCentsPerGb: number;
  readonly minimumCents: number;
}

/** Returns true for a plan with a price for usage. Other plans are never billed. */
export const isPayg = ({ priceCentsPerGb }: Pick<MonthSoFar, 'priceCentsPerGb'>): boolean => priceCentsPerGb > 0;

/** Returns the cost of the month in cents if the month ended now. */
export const estimateCents = ({ bytes, priceCentsPerGb, minimumCents }: MonthSoFar): number =>
  isPayg({ priceCentsPerGb }) ? dueCents(usageCents(bytes, priceCentsPerGb), minimumCents) : 0;

/**
 * Returns the number of bytes covered by the monthly minimum. Rounded up, so that never a cent too much is charged. With a price of 0,
 * the number is unlimited.
 */
export const freeBytes = (minimumCents: number, priceCentsPerGb: number): number => {
  if (priceCentsPerGb <= 0) return Number.MAX_SAFE_INTEGER;
  const price = BigInt(priceCentsPerGb);
  return Number((BigInt(minimumCents) * BYTES_PER_GB + price - 1n) / price);
};

interface DayOfUse {
  /** Day of the usage (UTC), as YYYY-MM-DD. */
  readonly day: string;
  readonly bytes: number;
}

interface DailyLine extends DayOfUse {
  readonly cents: number;
}

/**
 * Returns one line per day, oldest first. The lines sum to the cents of the month: a line has the increase of the running sum, so a cent
 * appears on the day that completed the cent.
 */
export const dailyLines = (days: readonly DayOfUse[], priceCentsPerGb: number): DailyLine[] => {
  let bytesSoFar = 0;
  let centsSoFar = 0;
  return days
    .toSorted((a, b) => (a.day < b.day ? -1 : Number(a.day > b.day)))
    .map(({ day, bytes }) => {
      bytesSoFar += bytes;
      const centsNow = usageCents(bytesSoFar, priceCentsPerGb);
      const cents = centsNow - centsSoFar;
      centsSoFar = centsNow;
      return { day, bytes, cents };
    });
};

// The spend cap limits the usage of a month in cents, for accounts that pay for usage. The monthly minimum does not count as usage.

export const CAP_NOTICES = [80, 100] as const;
export type CapNotice = (typeof CAP_NOTICES)[number];

interface CapFacts {
  /** Metered bytes of the current month. */
  readonly bytes: number;
  readonly priceCentsPerGb: number;
  /** Spend cap in cents. Null means no cap. */
  readonly capCents: number | null;
}

export interface CapState {
  readonly reached: boolean;
  /** Highest percentage of the cap reached, for the notice mail. Null if no notice is due. */
  readonly notice: CapNotice | null;
}

const FREE: CapState = { reached: false, notice: null };

/** Compares the usage of the month with the spend cap. A cap of 0 allows no tunnels; the owner who set the cap needs no notice mail. */
export const capState = ({ bytes, priceCentsPerGb, capCents }: CapFacts): CapState => {
  if (capCents === null || !isPayg({ priceCentsPerGb })) return FREE;
  if (capCents === 0) return { reached: true, notice: null };
  const used = usageCents(bytes, priceCentsPerGb);
  const notice = CAP_NOTICES.findLast((percent) => used * 100 >= capCents * percent) ?? null;
  return { reached: used >= capCents, notice };
};

/** Formats cents as dollars, such as `$5.00`. */
export const showDollars = (cents: number): string =>
  `$${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`;
