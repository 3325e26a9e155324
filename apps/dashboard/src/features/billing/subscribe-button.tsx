// Starts the subscription, or keeps one that was canceled. What it costs is said before.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { BillingStatus } from '@tunnel/contract';
import { useState } from 'react';
import { useApi } from '../../app/app-context.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { bytesText, moneyText } from '../../ui/format.ts';
import { useNow } from '../../ui/now.ts';
import { MaybeProblem } from '../../ui/problem.tsx';
import { SkeletonLines } from '../../ui/skeleton.tsx';
import { coveredBytes, nextMonthText, type Prices } from './month.ts';
import { PortalButton } from './portal-button.tsx';
import { BILLING_KEY } from './queries.ts';

export interface SubscribeButtonProps {
  readonly status: BillingStatus;
  /** null: not known yet. */
  readonly prices: Prices | null;
  readonly action: 'subscribe' | 'keep';
}

export const SubscribeButton = ({ status, prices, action }: SubscribeButtonProps) => {
  const api = useApi();
  const queries = useQueryClient();
  const [open, setOpen] = useState(false);
  const subscribing = useMutation({
    mutationFn: () => api.subscribe(),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: BILLING_KEY });
      setOpen(false);
    },
  });
  const close = (): void => {
    setOpen(false);
    subscribing.reset();
  };
  const words = WORDS[action];
  return (
    <>
      <Button kind="primary" onClick={() => setOpen(true)}>
        {words.button}
      </Button>
      <Dialog
        open={open}
        onClose={close}
        title={words.title}
        footer={
          <>
            <Button onClick={close}>Not now</Button>
            {status.has_payment_method ? (
              <Button
                kind="primary"
                disabled={prices === null}
                pending={subscribing.isPending}
                onClick={() => subscribing.mutate()}
              >
                {words.confirm}
              </Button>
            ) : (
              <PortalButton kind="primary">Add a payment method</PortalButton>
            )}
          </>
        }
      >
        {prices === null ? <SkeletonLines count={4} /> : <Costs prices={prices} />}
        {!status.has_payment_method && <p>First a payment method is needed. It is kept by the payment processor.</p>}
        <MaybeProblem error={subscribing.error} />
      </Dialog>
    </>
  );
};

const WORDS = {
  subscribe: { button: 'Subscribe', title: 'Subscribe to pay as you go', confirm: 'Subscribe' },
  keep: { button: 'Keep the subscription', title: 'Keep the subscription', confirm: 'Keep it' },
} as const;

const Costs = ({ prices }: { readonly prices: Prices }) => (
  <ul className="list-disc space-y-1.5 pl-5">
    <li>
      <strong className="font-semibold">{moneyText(prices.price_cents_per_gb)} per GB</strong> (1,000,000,000 bytes)
      that your tunnels carry, both ways together.
    </li>
    <li>
      <strong className="font-semibold">At least {moneyText(prices.monthly_minimum_cents)} a month.</strong> It is
      credited toward usage: the first {bytesText(coveredBytes(prices)).replace('.0 ', ' ')} of a month cost nothing
      more.
    </li>
    <li>
      Nothing is charged today. The first invoice comes on {useNow(nextMonthText)} (UTC), for this month. What you used
      before the subscription is free.
    </li>
    <li>You can set a spend cap, and cancel at any time in the billing portal: it then ends with the month.</li>
  </ul>
);
