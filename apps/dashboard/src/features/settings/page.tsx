// The account and this browser: name, sessions, theme.
import { PageHead } from '../../ui/page-head.tsx';

export const SettingsPage = () => <PageHead title="Settings" />;
