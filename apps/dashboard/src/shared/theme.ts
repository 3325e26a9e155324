// Light, dark, or as the system says. The choice is kept in this browser; public/start.js applies it before the first paint.

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
    // Storage is off: the choice lasts as long as the page.
  }
};

/** Other tabs change with this one. */
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
