// Log in.
import { PageHead } from '../../ui/page-head.tsx';

export const LoginPage = () => <PageHead title="Log in" />;
