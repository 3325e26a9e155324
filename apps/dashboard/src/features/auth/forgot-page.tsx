// Forgot your password?.
import { PageHead } from '../../ui/page-head.tsx';

export const ForgotPage = () => <PageHead title="Forgot your password?" />;
