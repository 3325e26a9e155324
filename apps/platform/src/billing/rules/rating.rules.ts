// What a month of use costs: its days and months in UTC, the price of the bytes, and the spend cap.

// Months as bills know them: from the first of one to the first of the next, at midnight in UTC, written YYYY-MM.

/** `at`: milliseconds since the epoch. */
export const monthOf = (at: number): string => new Date(at).toISOString().slice(0, 7);

export const monthStart = (month: string): number => Date.parse(`${month}-01T00:00:00.000Z`);

/** The first moment that is not in it any more. */
export const monthEnd = (month: string): number => {
  const start = new Date(monthStart(month));
  return Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1);
};

/**
 * The month that a record of use is billed in: the one that it happened in, as long as that one is not closed. One that comes
 * later than `lateMs` after its month's end, or from a clock that is ahead by a month, counts in the month of now.
 */
export const billingMonth = (at: number, now: number, lateMs: number): string => {
  const month = monthOf(at);
  const present = monthOf(now);
  const isOpen = month <= present && now < monthEnd(month) + lateMs;
  return isOpen ? month : present;
};

// Days as usage counts them: from midnight to midnight in UTC, written YYYY-MM-DD.

const DAY_MS = 86_400_000;

/** `at`: milliseconds since the epoch. */
export const utcDay = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** Today and the days before it, `count` of them, oldest first. */
export const lastUtcDays = (now: number, count: number): string[] =>
  Array.from({ length: count }, (_, index) => utcDay(now - (count - 1 - index) * DAY_MS));

// Bytes into money: whole cents, rounded down once, on the sum of a month. Never on a part of it, so that the order and the
// size of the parts do not matter.

/** Prices are for so many bytes. */
const BYTES_PER_GB = 1_000_000_000n;

/** In BigInt: bytes times a price leaves the numbers that are exact long before a petabyte. */
export const usageCents = (bytes: number, priceCentsPerGb: number): number =>
  Number((BigInt(bytes) * BigInt(priceCentsPerGb)) / BYTES_PER_GB);

/** The minimum is credited toward the usage. */
export const dueCents = (usage: number, minimumCents: number): number => Math.max(minimumCents, usage);

interface MonthSoFar {
  /** Metered ones. */
  readonly bytes: number;
  readonly priceCentsPerGb: number;
  readonly minimumCents: number;
}

/** Only a plan with a price for usage is billed. */
export const isPayg = ({ priceCentsPerGb }: Pick<MonthSoFar, 'priceCentsPerGb'>): boolean => priceCentsPerGb > 0;

/** What the month would cost if it ended now. */
export const estimateCents = ({ bytes, priceCentsPerGb, minimumCents }: MonthSoFar): number =>
  isPayg({ priceCentsPerGb }) ? dueCents(usageCents(bytes, priceCentsPerGb), minimumCents) : 0;

/** How many bytes the minimum pays for. Rounded up: never a cent more than due. With a price of 0 there is no end of them. */
export const freeBytes = (minimumCents: number, priceCentsPerGb: number): number => {
  if (priceCentsPerGb <= 0) return Number.MAX_SAFE_INTEGER;
  const price = BigInt(priceCentsPerGb);
  return Number((BigInt(minimumCents) * BYTES_PER_GB + price - 1n) / price);
};

interface DayOfUse {
  /** YYYY-MM-DD, in UTC. */
  readonly day: string;
  readonly bytes: number;
}

interface DailyLine extends DayOfUse {
  readonly cents: number;
}

/**
 * One line a day, oldest first, that sum to the cents of the month: each is what the running sum rose by. A cent shows up on
 * the day that completed it.
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

// The spend cap: a bound on the usage of a month in cents, of accounts that pay for usage. The monthly minimum is no usage.

export const CAP_NOTICES = [80, 100] as const;
export type CapNotice = (typeof CAP_NOTICES)[number];

interface CapFacts {
  /** Metered in this month. */
  readonly bytes: number;
  readonly priceCentsPerGb: number;
  /** null: no cap. */
  readonly capCents: number | null;
}

export interface CapState {
  readonly reached: boolean;
  /** The highest that holds. */
  readonly notice: CapNotice | null;
}

const FREE: CapState = { reached: false, notice: null };

/** A cap of 0 allows no tunnel at all; whoever set it needs no mail about it. */
export const capState = ({ bytes, priceCentsPerGb, capCents }: CapFacts): CapState => {
  if (capCents === null || !isPayg({ priceCentsPerGb })) return FREE;
  if (capCents === 0) return { reached: true, notice: null };
  const used = usageCents(bytes, priceCentsPerGb);
  const notice = CAP_NOTICES.findLast((percent) => used * 100 >= capCents * percent) ?? null;
  return { reached: used >= capCents, notice };
};

/** `$5.00`. */
export const showDollars = (cents: number): string =>
  `$${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`;
