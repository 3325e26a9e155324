// Card with the payment method, and a button to the payment processor's billing portal, which stores the method.
import { type UseMutationResult, useMutation } from '@tanstack/react-query';
import type { BillingStatus, PortalOrder } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { type ReactNode, useEffect, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { webAddress } from '../../shared/page-url.ts';
import { Badge } from '../../ui/badge.tsx';
import { Button, type ButtonKind } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Icon } from '../../ui/icon.tsx';
import { MaybeProblem } from '../../ui/problem.tsx';
import { cardText } from './parse.ts';

export const PaymentCard = ({ status }: { readonly status: BillingStatus }) => {
  const { has_payment_method: has, payment_method: card } = status;
  return (
    <Card
      title={
        <span className="inline-flex flex-wrap items-center gap-2.5">
          Payment method <Badge tone={has ? 'good' : 'neutral'}>{has ? 'On file' : 'None on file'}</Badge>
        </span>
      }
      description="Manage cards and invoices or cancel in the billing portal. We never see your card number."
      footer={
        status.payment_customer_id === null ? undefined : (
          <>
            Customer ID: <code className="break-all font-mono">{status.payment_customer_id}</code>
          </>
        )
      }
    >
      <div className="space-y-4">
        {card != null && <p className="font-medium">{cardText(card)}</p>}
        {has ? (
          <PortalButton>Open billing portal</PortalButton>
        ) : (
          <PortalButton flow="payment_method">Add a payment method</PortalButton>
        )}
      </div>
    </Card>
  );
};

interface PortalButtonProps {
  readonly kind?: ButtonKind;
  /** Task to open in the portal. With `payment_method`, the portal redirects back to the dashboard as soon as a card was added. */
  readonly flow?: PortalOrder['flow'];
  /** Called just before the browser leaves the dashboard. */
  readonly onLeave?: () => void;
  readonly children: ReactNode;
}

/** Button that opens the payment processor's billing portal in the current tab. */
export const PortalButton = ({ kind = 'secondary', flow, onLeave, children }: PortalButtonProps) => {
  const portal = usePortal(flow, onLeave);
  return (
    <div className="space-y-3">
      <Button kind={kind} pending={portal.isPending} onClick={portal.open}>
        {children}
        <Icon name="outside" />
      </Button>
      <MaybeProblem error={portal.error} />
    </div>
  );
};

interface Portal {
  readonly open: () => void;
  readonly isPending: boolean;
  readonly error: UseMutationResult['error'];
}

/** Requests a single-use link to the billing portal, then navigates the current tab to the portal. */
const usePortal = (flow: PortalOrder['flow'], onLeave?: () => void): Portal => {
  const api = useApi();
  const [leaving, setLeaving] = useState(false);
  const opening = useMutation({
    mutationFn: async () => checked((await api.openPortal({ return_url: here(), ...(flow && { flow }) })).url),
    onSuccess: (url) => {
      setLeaving(true);
      onLeave?.();
      window.location.assign(url);
    },
  });
  // The browser's Back button can restore the page as it was, so the pending state has to be reset.
  useEffect(() => {
    const stay = (): void => setLeaving(false);
    window.addEventListener('pageshow', stay);
    return () => window.removeEventListener('pageshow', stay);
  }, []);
  return {
    open: () => opening.mutate(),
    isPending: opening.isPending || leaving,
    error: opening.error,
  };
};

const here = (): string => window.location.origin + window.location.pathname;

const checked = (url: string): string => {
  const address = webAddress(url);
  if (address === null) throw new Fault('BILLING_PROCESSOR_REFUSED', { reason: 'the billing portal returned no URL' });
  return address;
};
