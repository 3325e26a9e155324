// Card with the estimated cost of the current month and its calculation.
import type { BillingStatus, BillingUsage } from '@tunnel/contract';
import type { ReactNode } from 'react';
import { Card, Skeleton } from '../../ui/card.tsx';
import { moneyText, monthText, percentText } from '../../ui/format.ts';
import { useNow } from '../../ui/hooks.ts';
import { Bar, Bytes } from '../../ui/values.tsx';
import { capShare, capTone } from './cost.ts';

export interface MonthCardProps {
  readonly status: BillingStatus;
  /** Usage of the current month. Null while unknown. */
  readonly usage: BillingUsage | null;
}

export const MonthCard = ({ status, usage }: MonthCardProps) => (
  <Card title="This month so far" description={`${useNow(monthText)} (UTC). Estimate, updated every few seconds`}>
    <p className="font-semibold text-2xl tracking-tight">{moneyText(status.estimated_mtd_cents)}</p>
    {status.billing_model === 'free' ? (
      <p className="mt-1 text-muted">Usage is free on this plan and is never billed later.</p>
    ) : (
      <div className="mt-4 space-y-5">
        {usage === null ? (
          <Skeleton className="h-44 w-full max-w-xl" />
        ) : (
          <Computed usage={usage} due={status.estimated_mtd_cents} />
        )}
        {status.spend_cap_cents !== null &&
          (usage === null ? (
            <Skeleton className="h-9 w-full max-w-xl" />
          ) : (
            <CapBar used={usage.usage_cents} cap={status.spend_cap_cents} />
          ))}
      </div>
    )}
  </Card>
);

const Computed = ({ usage, due }: { readonly usage: BillingUsage; readonly due: number }) => (
  <table className="w-full max-w-xl border-collapse">
    <caption className="sr-only">Breakdown of the estimate</caption>
    <tbody>
      <Line name="Usage" note={<UsageSum usage={usage} />} cents={usage.usage_cents} />
      <Line name="Monthly minimum" note="Credited toward usage" cents={usage.monthly_minimum_cents} />
      <Line name="Due for the month" note="Usage or minimum, whichever is larger" cents={due} isSum />
    </tbody>
  </table>
);

const UsageSum = ({ usage }: { readonly usage: BillingUsage }) => (
  <>
    <Bytes value={usage.metered_bytes} /> × {moneyText(usage.price_cents_per_gb)} per GB, rounded down. Direct p2p
    traffic is free.
  </>
);

interface LineProps {
  readonly name: string;
  readonly note: ReactNode;
  readonly cents: number;
  readonly isSum?: boolean;
}

const Line = ({ name, note, cents, isSum = false }: LineProps) => (
  <tr className={isSum ? 'border-edge border-t font-semibold' : 'border-line border-t first:border-t-0'}>
    <th scope="row" className={`py-2 text-left ${isSum ? '' : 'font-normal'}`}>
      {name}
      <span className="block font-normal text-muted text-sm">{note}</span>
    </th>
    <td className="py-2 pl-4 text-right align-top">{moneyText(cents)}</td>
  </tr>
);

const CapBar = ({ used, cap }: { readonly used: number; readonly cap: number }) => {
  const share = capShare(used, cap);
  const text = `${moneyText(used)} of the ${moneyText(cap)} limit used`;
  return (
    <div className="max-w-xl">
      <div className="mb-1.5 flex flex-wrap items-baseline justify-between gap-x-4">
        <span>{text}</span>
        <span className={share >= 1 ? 'font-semibold text-bad' : 'text-muted'}>
          {share >= 1 ? 'Limit reached: tunnels are stopped' : percentText(share)}
        </span>
      </div>
      <Bar share={share} label={text} tone={capTone(share)} className="h-2" />
    </div>
  );
};
