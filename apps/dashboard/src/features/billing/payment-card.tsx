// The payment method, kept by the payment processor on its own pages, and the way to them.
import { type UseMutationResult, useMutation } from '@tanstack/react-query';
import type { BillingStatus } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { type ReactNode, useEffect, useState } from 'react';
import { useApi } from '../../app/app-context.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button, type ButtonKind } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Icon } from '../../ui/icon.tsx';
import { MaybeProblem } from '../../ui/problem.tsx';
import { webAddress } from './parse.ts';

export const PaymentCard = ({ status }: { readonly status: BillingStatus }) => {
  const has = status.has_payment_method;
  return (
    <Card
      title={
        <span className="inline-flex flex-wrap items-center gap-2.5">
          Payment method <Badge tone={has ? 'good' : 'neutral'}>{has ? 'On file' : 'None on file'}</Badge>
        </span>
      }
      description="Cards, open invoices and cancelling are in the billing portal of the payment processor. You leave this page and come back to it; card numbers never reach us."
      footer={
        status.payment_customer_id === null ? undefined : (
          <>
            Customer at the processor: <code className="break-all font-mono">{status.payment_customer_id}</code>
          </>
        )
      }
    >
      <PortalButton>{has ? 'Open the billing portal' : 'Add a payment method'}</PortalButton>
    </Card>
  );
};

interface PortalButtonProps {
  readonly kind?: ButtonKind;
  readonly children: ReactNode;
}

/** Leads to the payment processor's own pages, in place of this one. */
export const PortalButton = ({ kind = 'secondary', children }: PortalButtonProps) => {
  const portal = usePortal();
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

/** A link for one visit, then a navigation of the whole page. */
const usePortal = (): Portal => {
  const api = useApi();
  const [leaving, setLeaving] = useState(false);
  const opening = useMutation({
    mutationFn: async () => (await api.openPortal({ return_url: here() })).url,
    onSuccess: (url) => {
      setLeaving(true);
      window.location.assign(checked(url));
    },
  });
  // Back by the browser's own button: the page is as it was left.
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
  if (address === null) throw new Fault('BILLING_PROCESSOR_REFUSED', { reason: 'its portal has no address' });
  return address;
};
