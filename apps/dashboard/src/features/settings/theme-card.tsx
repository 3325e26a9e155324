// Light or dark, kept in this browser.
import { useEffect, useState } from 'react';
import { chooseTheme, readTheme, type Theme } from '../../app/theme.ts';
import { Card } from '../../ui/card.tsx';
import { Choice } from '../../ui/choice.tsx';

const THEMES = [
  { value: 'system', label: 'System' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
] as const satisfies readonly { value: Theme; label: string }[];

export const ThemeCard = () => {
  const [theme, setTheme] = useState(readTheme);
  // Another tab may change it too.
  useEffect(() => {
    const follow = (): void => setTheme(readTheme());
    window.addEventListener('storage', follow);
    return () => window.removeEventListener('storage', follow);
  }, []);
  return (
    <Card title="Appearance" description="Kept in this browser. System follows what your device is set to.">
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
