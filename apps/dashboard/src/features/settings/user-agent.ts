// Programs by the names that people know. What is not known is shown as it came.

const BROWSERS = [
  ['Edge', /\bEdg(?:e|A|iOS)?\/(\d+)/],
  ['Opera', /\bOPR\/(\d+)/],
  ['Samsung Internet', /\bSamsungBrowser\/(\d+)/],
  ['Firefox', /\b(?:Firefox|FxiOS)\/(\d+)/],
  // After those that call themselves Chrome too.
  ['Chrome', /\b(?:Chrome|CriOS|HeadlessChrome)\/(\d+)/],
  ['Safari', /\bVersion\/(\d+)[^)]*\bSafari\//],
  ['curl', /^curl\/(\d+)/],
  ['Command line', /^tunnel\/([\d.]+)/],
] as const;

const SYSTEMS = [
  ['Android', /\bAndroid\b/],
  ['iOS', /\b(?:iPhone|iPad)\b/],
  ['Windows', /\bWindows\b|\bwin32\b/],
  ['macOS', /\bMac OS X\b|\bdarwin\b/],
  ['ChromeOS', /\bCrOS\b/],
  ['Linux', /\blinux\b/i],
] as const;

const SHOWN_MAX = 80;

export const programName = (userAgent: string): string => {
  if (userAgent === '') return 'Unknown program';
  const [browser] = BROWSERS.flatMap(([name, pattern]) => {
    const version = pattern.exec(userAgent)?.[1];
    return version === undefined ? [] : [`${name} ${version}`];
  });
  if (browser === undefined) return userAgent.slice(0, SHOWN_MAX);
  const system = SYSTEMS.find(([, pattern]) => pattern.test(userAgent))?.[0];
  return system === undefined ? browser : `${browser} on ${system}`;
};
