// Choose a new password.
import { PageHead } from '../../ui/page-head.tsx';

export const ResetPage = () => <PageHead title="Choose a new password" />;
