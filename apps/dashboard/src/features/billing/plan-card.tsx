// The plan and the subscription: how they stand, what that means, and what can be done.
import type { BillingStatus } from '@tunnel/contract';
import { Badge } from '../../ui/badge.tsx';
import { Card } from '../../ui/card.tsx';
import { moneyText } from '../../ui/format.ts';
import { Notice } from '../../ui/notice.tsx';
import { type Fact, Facts } from './facts.tsx';
import { type Prices, utcDateText } from './month.ts';
import { PortalButton } from './portal-button.tsx';
import { type StandingAction, standingOf } from './standing.ts';
import { SubscribeButton } from './subscribe-button.tsx';

export interface PlanCardProps {
  readonly status: BillingStatus;
  /** null: not known yet. */
  readonly prices: Prices | null;
}

export const PlanCard = ({ status, prices }: PlanCardProps) => {
  const end = status.current_period_end === null ? null : utcDateText(Date.parse(status.current_period_end));
  const standing = standingOf(status, end);
  return (
    <Card
      title={
        <span className="inline-flex flex-wrap items-center gap-2.5">
          {standing.plan} <Badge tone={standing.badge.tone}>{standing.badge.text}</Badge>
        </span>
      }
      description={standing.meaning}
      actions={<Act {...{ status, prices, action: standing.action }} />}
    >
      <div className="space-y-5">
        {standing.warning !== null && (
          <Notice tone={status.subscription_status === 'past_due' ? 'bad' : 'warn'}>{standing.warning}</Notice>
        )}
        <Facts facts={factsOf(status, end)} />
      </div>
    </Card>
  );
};

const Act = ({ status, prices, action }: PlanCardProps & { readonly action: StandingAction }) => {
  if (action === 'none') return null;
  if (action === 'pay') return <PortalButton kind="primary">Go to the open invoice</PortalButton>;
  return <SubscribeButton {...{ status, prices, action }} />;
};

const factsOf = (status: BillingStatus, end: string | null): Fact[] => [
  {
    name: status.subscription_status === 'canceled' ? 'Subscription ends' : 'Next invoice',
    value: end ?? 'None',
  },
  { name: 'Monthly minimum', value: moneyText(status.monthly_minimum_cents) },
  { name: 'Spend cap', value: status.spend_cap_cents === null ? 'None' : moneyText(status.spend_cap_cents) },
  { name: 'Custom subdomains', value: status.allow_custom_subdomains ? 'Allowed' : 'Not in this plan' },
];
