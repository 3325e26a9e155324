// The tunnels of the account, those that live first.
import { PageHead } from '../../ui/page-head.tsx';

export const TunnelsPage = () => <PageHead title="Tunnels" />;
