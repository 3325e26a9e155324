// Verify your address.
import { PageHead } from '../../ui/page-head.tsx';

export const VerifyPage = () => <PageHead title="Verify your address" />;
