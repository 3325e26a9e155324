// The payment method, kept by the payment processor on its own pages.
import type { BillingStatus } from '@tunnel/contract';
import { Badge } from '../../ui/badge.tsx';
import { Card } from '../../ui/card.tsx';
import { PortalButton } from './portal-button.tsx';

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
