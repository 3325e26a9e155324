// Billing page: plan, spend limit, payment method and invoices. Servers that do not charge for usage show an empty page instead.
import { useQuery } from '@tanstack/react-query';
import type { BillingStatus } from '@tunnel/contract';
import { useApi } from '../../api/app-context.tsx';
import { Loaded, PanelBoundary } from '../../shared/panel-boundary.tsx';
import { Notice } from '../../ui/badge.tsx';
import { Card, Skeleton } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty-state.tsx';
import { PageHead } from '../../ui/page-head.tsx';
import { CapCard } from './cap-card.tsx';
import { InvoicesCard } from './invoices-card.tsx';
import { MonthCard } from './month-card.tsx';
import { PaymentCard } from './payment-card.tsx';
import { PlanCard } from './plan-card.tsx';
import { billingQuery, billingUsageQuery } from './queries.ts';

export const BillingPage = () => {
  const billing = useQuery(billingQuery(useApi()));
  return (
    <>
      <PageHead title="Billing" description="Plan, usage and invoices" />
      <div className="space-y-6">
        <Loaded query={billing} title="Couldn't load billing" pending={<BillingPending />}>
          {(status) => (status.hidden === true ? <BillingOff /> : <BillingPanels status={status} />)}
        </Loaded>
        {!billing.isPending && billing.data?.hidden !== true && (
          <PanelBoundary>
            <InvoicesCard />
          </PanelBoundary>
        )}
      </div>
    </>
  );
};

const BillingPanels = ({ status }: { readonly status: BillingStatus }) => {
  // The usage behind the estimate can be missing. The estimated amount is shown regardless.
  const usage = useQuery(billingUsageQuery(useApi())).data ?? null;
  return (
    <>
      {status.test_mode === true && <TestMode />}
      <PanelBoundary>
        <PlanCard status={status} prices={usage} />
      </PanelBoundary>
      <div className="grid gap-6 lg:grid-cols-2">
        <PanelBoundary>
          <MonthCard status={status} usage={usage} />
        </PanelBoundary>
        <PanelBoundary>
          <PaymentCard status={status} />
        </PanelBoundary>
      </div>
      <PanelBoundary>
        <CapCard status={status} usageCents={usage?.usage_cents ?? null} />
      </PanelBoundary>
    </>
  );
};

const TestMode = () => (
  <Notice tone="accent">
    <strong className="font-semibold">Test mode.</strong> Cards are not real, and no money is charged. The test clock
    affects invoices only. Usage and the current month follow the real date.
  </Notice>
);

const BillingOff = () => (
  <Card>
    <Empty icon="billing" title="Billing is off">
      This server does not charge for usage.
    </Empty>
  </Card>
);

const BillingPending = () => (
  <>
    <Skeleton className="h-44 w-full" />
    <div className="grid gap-6 lg:grid-cols-2">
      <Skeleton className="h-64 w-full" />
      <Skeleton className="h-64 w-full" />
    </div>
    <Skeleton className="h-60 w-full" />
  </>
);
