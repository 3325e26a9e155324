// The plan and the subscription: how they stand, what that means, and what can be done.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { BillingStatus } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { type ReactNode, useCallback, useEffect, useState } from 'react';
import { useApi } from '../../app/app-context.tsx';
import { meQuery } from '../../app/queries.ts';
import { Badge, Notice } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Card, SkeletonLines } from '../../ui/card.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { bytesText, moneyText, nextMonthText, utcDateText } from '../../ui/format.ts';
import { useNow } from '../../ui/hooks.ts';
import { MaybeProblem } from '../../ui/problem.tsx';
import { coveredBytes, type Prices } from './cost.ts';
import { PortalButton } from './payment-card.tsx';
import { type PlanAction, planStateOf } from './plan-state.ts';
import { BILLING_KEY } from './queries.ts';
import { rememberSubscribing } from './subscribe-intent.ts';

export interface PlanCardProps {
  readonly status: BillingStatus;
  /** null: not known yet. */
  readonly prices: Prices | null;
  /** They are back from adding a card, in order to subscribe. */
  readonly finish: boolean;
}

export const PlanCard = ({ status, prices, finish }: PlanCardProps) => {
  const end = status.current_period_end === null ? null : utcDateText(Date.parse(status.current_period_end));
  const state = planStateOf(status, end);
  return (
    <Card
      title={
        <span className="inline-flex flex-wrap items-center gap-2.5">
          {state.plan} <Badge tone={state.badge.tone}>{state.badge.text}</Badge>
        </span>
      }
      description={state.meaning}
      actions={<PlanActionButton {...{ status, prices, finish, action: state.action }} />}
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

const PlanActionButton = ({ status, prices, finish, action }: PlanCardProps & { readonly action: PlanAction }) => {
  if (action === 'none') return null;
  if (action === 'pay') return <PortalButton kind="primary">Pay the open invoice</PortalButton>;
  return <SubscribeButton {...{ status, prices, finish, action }} />;
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

/** Side by side where there is room. */
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

interface SubscribeButtonProps extends PlanCardProps {
  readonly action: 'subscribe' | 'keep';
}

/** Starts the subscription, or keeps one that was canceled. What it costs is said before. */
const SubscribeButton = ({ status, prices, finish, action }: SubscribeButtonProps) => {
  const api = useApi();
  const me = useQuery(meQuery(api)).data;
  const queries = useQueryClient();
  const [open, setOpen] = useState(false);
  const subscribing = useMutation({
    mutationFn: () => api.subscribe(),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: BILLING_KEY });
      setOpen(false);
    },
  });
  const { mutate, reset } = subscribing;
  const close = useCallback((): void => {
    setOpen(false);
    reset();
  }, [reset]);
  useEffect(() => {
    if (!finish) return;
    setOpen(true);
    // The processor is asked: its news of the card may still be on its way here.
    mutate(undefined, { onError: (error) => isWithoutCard(error) && close() });
  }, [finish, mutate, close]);
  const labels = LABELS[action];
  return (
    <>
      <Button kind="primary" onClick={() => setOpen(true)}>
        {labels.button}
      </Button>
      <Dialog
        open={open}
        onClose={close}
        title={labels.title}
        footer={
          <>
            <Button onClick={close}>Cancel</Button>
            {status.has_payment_method || subscribing.isPending ? (
              <Button
                kind="primary"
                disabled={prices === null}
                pending={subscribing.isPending}
                onClick={() => subscribing.mutate()}
              >
                {labels.confirm}
              </Button>
            ) : (
              <PortalButton
                kind="primary"
                flow="payment_method"
                onLeave={() => me !== undefined && rememberSubscribing(me.id, Date.now())}
              >
                Add card and subscribe
              </PortalButton>
            )}
          </>
        }
      >
        {prices === null ? <SkeletonLines count={4} /> : <Costs prices={prices} />}
        {!status.has_payment_method && !subscribing.isPending && (
          <p>Add a payment method to continue. Your subscription starts as soon as you are back.</p>
        )}
        <MaybeProblem error={subscribing.error} />
      </Dialog>
    </>
  );
};

const LABELS = {
  subscribe: { button: 'Subscribe', title: 'Subscribe to pay as you go', confirm: 'Subscribe' },
  keep: { button: 'Keep subscription', title: 'Keep your subscription', confirm: 'Keep subscription' },
} as const;

/** They came back without one. */
const isWithoutCard = (error: unknown): boolean => error instanceof Fault && error.code === 'BILLING_NO_PAYMENT_METHOD';

const Costs = ({ prices }: { readonly prices: Prices }) => (
  <ul className="list-disc space-y-1.5 pl-5">
    <li>
      <strong className="font-semibold">{moneyText(prices.price_cents_per_gb)} per GB</strong> (1,000,000,000 bytes)
      your tunnels carry, in and out. Direct p2p traffic is free.
    </li>
    <li>
      <strong className="font-semibold">At least {moneyText(prices.monthly_minimum_cents)} a month.</strong> It pays for
      the first {bytesText(coveredBytes(prices)).replace('.0 ', ' ')}.
    </li>
    <li>
      You pay nothing today. Your first invoice comes on {useNow(nextMonthText)} (UTC) for this month. Usage before you
      subscribe is free.
    </li>
    <li>Set a spend limit or cancel any time. A canceled subscription ends with the month.</li>
  </ul>
);
