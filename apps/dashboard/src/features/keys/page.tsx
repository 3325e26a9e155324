// The API keys of the account.
import { PageHead } from '../../ui/page-head.tsx';

export const KeysPage = () => <PageHead title="Keys" />;
