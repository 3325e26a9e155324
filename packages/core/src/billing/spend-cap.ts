// The spend cap: a bound on the usage of a month in cents, of accounts that pay for usage. The monthly minimum is no usage.
import { isPayg, usageCents } from './rating.ts';

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
