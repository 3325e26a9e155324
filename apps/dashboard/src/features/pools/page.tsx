// The load-balanced pools and their members, as they are now.
import { PageHead } from '../../ui/page-head.tsx';

export const PoolsPage = () => <PageHead title="Pools" />;
