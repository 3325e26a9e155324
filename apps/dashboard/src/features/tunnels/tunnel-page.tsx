// One tunnel: its counts, its health, its requests.
import { PageHead } from '../../ui/page-head.tsx';

export const TunnelPage = () => <PageHead title="Tunnel" />;
