// Check your mail.
import { PageHead } from '../../ui/page-head.tsx';

export const CheckMailPage = () => <PageHead title="Check your mail" />;
