// Card with the plan and the subscription: the current state, an explanation, and the available action.
import type { BillingStatus } from '@tunnel/contract';
import type { ReactNode } from 'react';
import { Badge, Notice } from '../../ui/badge.tsx';
import { Card } from '../../ui/card.tsx';
import { moneyText, utcDateText } from '../../ui/format.ts';
import type { Prices } from './cost.ts';
import { PortalButton } from './payment-card.tsx';
import { type PlanAction, planStateOf } from './plan-state.ts';
import { SubscribeButton, useSubscribing } from './subscribe-button.tsx';

export interface PlanCardProps {
  readonly status: BillingStatus;
  /** Prices of the plan. Null while unknown. */
  readonly prices: Prices | null;
}

export const PlanCard = ({ status, prices }: PlanCardProps) => {
  const end = status.current_period_end === null ? null : utcDateText(Date.parse(status.current_period_end));
  const state = planStateOf(status, end);
  const subscribing = useSubscribing(state.action);
  return (
    <Card
      title={
        <span className="inline-flex flex-wrap items-center gap-2.5">
          {state.plan} <Badge tone={state.badge.tone}>{state.badge.text}</Badge>
        </span>
      }
      description={state.meaning}
      actions={<PlanActionButton {...{ status, prices, subscribing, action: state.action }} />}
    >
      <div className="space-y-5">
        {state.warning !== null && (
          <Notice tone={status.subscription_status === 'past_due' ? 'bad' : 'warn'}>{state.warning}</Notice>
        )}
        <DetailList details={detailsOf(status, end)} />
      </div>
    </Card>
  );
};

interface PlanActionProps extends PlanCardProps {
  readonly action: PlanAction;
  readonly subscribing: ReturnType<typeof useSubscribing>;
}

const PlanActionButton = ({ status, prices, subscribing, action }: PlanActionProps) => {
  if (action === 'none') return null;
  if (action === 'pay') return <PortalButton kind="primary">Pay the open invoice</PortalButton>;
  return <SubscribeButton {...{ status, prices, subscribing, action }} />;
};

const detailsOf = (status: BillingStatus, end: string | null): Detail[] => [
  {
    name: status.subscription_status === 'canceled' ? 'Subscription ends' : 'Next invoice',
    value: end ?? 'None',
  },
  { name: 'Monthly minimum', value: moneyText(status.monthly_minimum_cents) },
  { name: 'Spend limit', value: status.spend_cap_cents === null ? 'None' : moneyText(status.spend_cap_cents) },
  { name: 'Custom subdomains', value: status.allow_custom_subdomains ? 'Allowed' : 'Not in this plan' },
];

interface Detail {
  readonly name: string;
  readonly value: ReactNode;
}

/** List of details in columns. Narrow screens have two columns, wide screens four. */
const DetailList = ({ details }: { readonly details: readonly Detail[] }) => (
  <dl className="grid grid-cols-2 gap-x-8 gap-y-3 lg:grid-cols-4">
    {details.map(({ name, value }) => (
      <div key={name}>
        <dt className="text-muted text-sm">{name}</dt>
        <dd className="mt-0.5 font-medium">{value}</dd>
      </div>
    ))}
  </dl>
);
