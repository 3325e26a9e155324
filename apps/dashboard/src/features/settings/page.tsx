// Settings of the account and this browser: name, sign-in, theme, devices, connected apps, sign-out, and account deletion.
import { useEffect, useState } from 'react';
import { useApp } from '../../api/app-context.tsx';
import { chooseTheme, readTheme, type Theme } from '../../shared/theme.ts';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Choice } from '../../ui/choice.tsx';
import { PageHead } from '../../ui/page-head.tsx';
import { ConnectedAppsCard } from './connected-apps-card.tsx';
import { DeleteAccountCard } from './delete-account-card.tsx';
import { ProfileCard } from './profile-card.tsx';
import { SessionsCard } from './sessions-card.tsx';
import { SignInCard } from './sign-in-card.tsx';

export const SettingsPage = () => (
  <>
    <PageHead title="Settings" />
    <div className="space-y-6">
      <ProfileCard />
      <SignInCard />
      <ThemeCard />
      <SessionsCard />
      <ConnectedAppsCard />
      <LogOutCard />
      <DeleteAccountCard />
    </div>
  </>
);

const THEMES = [
  { value: 'system', label: 'System' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
] as const satisfies readonly { value: Theme; label: string }[];

const ThemeCard = () => {
  const [theme, setTheme] = useState(readTheme);
  // The theme can also change in another tab.
  useEffect(() => {
    const follow = (): void => setTheme(readTheme());
    window.addEventListener('storage', follow);
    return () => window.removeEventListener('storage', follow);
  }, []);
  return (
    <Card title="Appearance" description="Saved in this browser">
      <Choice
        label="Theme"
        value={theme}
        options={THEMES}
        onChange={(wanted) => {
          chooseTheme(wanted);
          setTheme(wanted);
        }}
      />
    </Card>
  );
};

const LogOutCard = () => {
  const { session } = useApp();
  return (
    <Card
      title="Sign out"
      description="Signs you out in every tab of this browser. Tunnels and API keys keep working."
      actions={
        // The tab forgets the session even if the request fails. An unreachable platform keeps the session until it expires.
        <Button onClick={() => void session.signOut().catch(() => {})}>Sign out</Button>
      }
      padded={false}
    />
  );
};
