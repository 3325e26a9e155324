// Create an account.
import { PageHead } from '../../ui/page-head.tsx';

export const SignupPage = () => <PageHead title="Create an account" />;
