// What the account pays, and the most that it may.
import { PageHead } from '../../ui/page-head.tsx';

export const BillingPage = () => <PageHead title="Billing" />;
