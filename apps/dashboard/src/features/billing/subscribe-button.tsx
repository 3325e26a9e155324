// Button and dialog that start a subscription or keep a canceled subscription. The dialog lists the costs first and asks for a missing
// card.
import { type UseMutationResult, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { BillingStatus, StartedSubscription } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { useEffect, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { meQuery } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { SkeletonLines } from '../../ui/card.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { bytesText, moneyText, nextMonthText } from '../../ui/format.ts';
import { useNow } from '../../ui/hooks.ts';
import { MaybeProblem } from '../../ui/problem.tsx';
import { coveredBytes, type Prices } from './cost.ts';
import { PortalButton } from './payment-card.tsx';
import type { PlanAction } from './plan-state.ts';
import { BILLING_KEY } from './queries.ts';
import { rememberSubscribing, takeSubscribing } from './subscribe-intent.ts';

/** The subscribe request. Its argument is `back` if the user has just returned from adding a card, and `here` otherwise. */
type Subscribing = UseMutationResult<StartedSubscription, Error, 'here' | 'back'>;

/**
 * Returns the subscribe request. Sends the request automatically if the user has just returned from adding a card, even if the dashboard
 * does not know the card yet: the payment processor decides, because its update can still be on its way.
 */
export const useSubscribing = (action: PlanAction): Subscribing => {
  const api = useApi();
  const queries = useQueryClient();
  const me = useQuery(meQuery(api)).data;
  const subscribing = useMutation({
    mutationFn: (_from: 'here' | 'back') => api.subscribe(),
    onSuccess: () => queries.invalidateQueries({ queryKey: BILLING_KEY }),
  });
  const { mutate } = subscribing;
  useEffect(() => {
    // The stored intent is removed in any case. An account that is subscribed by now must not subscribe again later.
    const isBack = me !== undefined && takeSubscribing(me.id, Date.now());
    if (isBack && (action === 'subscribe' || action === 'keep')) mutate('back');
  }, [me, action, mutate]);
  return subscribing;
};

interface SubscribeButtonProps {
  readonly status: BillingStatus;
  /** Prices of the plan. Null while unknown. */
  readonly prices: Prices | null;
  readonly action: 'subscribe' | 'keep';
  readonly subscribing: Subscribing;
}

export const SubscribeButton = ({ status, prices, action, subscribing }: SubscribeButtonProps) => {
  const [isOpen, setIsOpen] = useState(false);
  const { isPending, error } = subscribing;
  const isFinishing = subscribing.variables === 'back' && (isPending || (error !== null && !isWithoutCard(error)));
  const labels = LABELS[action];
  const close = (): void => {
    setIsOpen(false);
    subscribing.reset();
  };
  return (
    <>
      <Button kind="primary" onClick={() => setIsOpen(true)}>
        {labels.button}
      </Button>
      <Dialog
        open={isOpen || isFinishing}
        onClose={close}
        title={labels.title}
        footer={
          <>
            <Button onClick={close}>Cancel</Button>
            {status.has_payment_method || isPending ? (
              <Button
                kind="primary"
                disabled={prices === null}
                pending={isPending}
                onClick={() => subscribing.mutate('here', { onSuccess: () => setIsOpen(false) })}
              >
                {labels.confirm}
              </Button>
            ) : (
              <AddCardButton />
            )}
          </>
        }
      >
        {prices === null ? <SkeletonLines count={4} /> : <Costs prices={prices} />}
        {!status.has_payment_method && !isPending && (
          <p>Add a payment method to continue. Your subscription starts when you return to this page.</p>
        )}
        {!isWithoutCard(error) && <MaybeProblem error={error} />}
      </Dialog>
    </>
  );
};

const LABELS = {
  subscribe: { button: 'Subscribe', title: 'Subscribe to pay as you go', confirm: 'Subscribe' },
  keep: { button: 'Keep subscription', title: 'Keep your subscription', confirm: 'Keep subscription' },
} as const;

/** Returns whether the user came back without adding a card. No error is shown then, because the user knows. */
const isWithoutCard = (error: unknown): boolean => error instanceof Fault && error.code === 'BILLING_NO_PAYMENT_METHOD';

const AddCardButton = () => {
  const me = useQuery(meQuery(useApi())).data;
  const remember = (): void => {
    if (me !== undefined) rememberSubscribing(me.id, Date.now());
  };
  return (
    <PortalButton kind="primary" flow="payment_method" onLeave={remember}>
      Add card and subscribe
    </PortalButton>
  );
};

const Costs = ({ prices }: { readonly prices: Prices }) => (
  <ul className="list-disc space-y-1.5 pl-5">
    <li>
      <strong className="font-semibold">{moneyText(prices.price_cents_per_gb)} per GB</strong> (1,000,000,000 bytes)
      transferred by your tunnels, in and out. Direct p2p traffic is free.
    </li>
    <li>
      <strong className="font-semibold">At least {moneyText(prices.monthly_minimum_cents)} a month.</strong> The minimum
      covers the first {bytesText(coveredBytes(prices)).replace('.0 ', ' ')}.
    </li>
    <li>
      You pay nothing today. Your first invoice for this month is issued on {useNow(nextMonthText)} (UTC). Usage before
      you subscribe is free.
    </li>
    <li>Set a spend limit or cancel at any time. A canceled subscription ends with the month.</li>
  </ul>
);
