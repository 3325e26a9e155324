// The account and this browser: name, sessions, theme.
import { PageHead } from '../../ui/page-head.tsx';
import { LogOutCard } from './log-out-card.tsx';
import { ProfileCard } from './profile-card.tsx';
import { SessionsCard } from './sessions-card.tsx';
import { ThemeCard } from './theme-card.tsx';

export const SettingsPage = () => (
  <>
    <PageHead title="Settings" description="Your account, and how this browser shows it." />
    <div className="space-y-6">
      <ProfileCard />
      <ThemeCard />
      <SessionsCard />
      <LogOutCard />
    </div>
  </>
);
