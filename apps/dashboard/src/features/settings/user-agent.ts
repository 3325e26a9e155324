// Names of browsers and operating systems, derived from a User-Agent header. Unknown programs are shown as sent.

const BROWSERS = [
  ['Edge', /\bEdg(?:e|A|iOS)?\/(\d+)/],
  ['Opera', /\bOPR\/(\d+)/],
  ['Samsung Internet', /\bSamsungBrowser\/(\d+)/],
  ['Firefox', /\b(?:Firefox|FxiOS)\/(\d+)/],
  // In this list, Chrome must come after Edge, Opera and Samsung Internet, because their headers also contain "Chrome".
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
