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
