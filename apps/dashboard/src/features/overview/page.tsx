// How the account is doing, at one look.
import { PageHead } from '../../ui/page-head.tsx';

export const OverviewPage = () => <PageHead title="Overview" />;
