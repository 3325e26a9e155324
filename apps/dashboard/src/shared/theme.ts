// The color theme: light, dark, or the system setting. The choice is stored in this browser; public/start.js applies the theme before the
// first paint.

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'theme';

export const readTheme = (): Theme => {
  const shown = document.documentElement.dataset['theme'];
  return shown === 'light' || shown === 'dark' ? shown : 'system';
};

export const chooseTheme = (theme: Theme): void => {
  applyTheme(theme);
  try {
    if (theme === 'system') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // Storage is disabled in this browser, so the theme applies only until the page is closed.
  }
};

/** Starts to apply themes chosen in other tabs to this tab. */
export const followOtherTabs = (): void => {
  window.addEventListener('storage', ({ key, newValue }) => {
    if (key === KEY) applyTheme(newValue === 'light' || newValue === 'dark' ? newValue : 'system');
  });
};

const applyTheme = (theme: Theme): void => {
  const { dataset } = document.documentElement;
  if (theme === 'system') delete dataset['theme'];
  else dataset['theme'] = theme;
};
